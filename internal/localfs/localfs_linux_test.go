package localfs

import (
	"path/filepath"
	"testing"
)

func TestKindOf(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x65735546: "FUSE", 0x01021997: "9p",
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", 0x794c7630: "", // ext4, XFS, btrfs, tmpfs, overlay
	} {
		if got := kindOf(magic); got != want {
			t.Errorf("kindOf(%#x) = %q, want %q", magic, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := Check(filepath.Join(dir, "not-there-yet")); err != nil {
		t.Errorf("a file in the temporary folder: %v", err)
	}
	if err := Check(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("a file in a folder that is not there passed")
	}
}
