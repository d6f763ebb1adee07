package filelock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/filelock"
)

func TestRemoteKinds(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x65735546: "FUSE", 0x01021997: "9p",
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", 0x794c7630: "", // ext4, XFS, btrfs, tmpfs, overlay
	} {
		if got := filelock.RemoteKinds[magic]; got != want {
			t.Errorf("file system %#x is %q, want %q", magic, got, want)
		}
	}
}

func TestCheckLocal(t *testing.T) {
	dir := t.TempDir()
	if err := filelock.CheckLocal(filepath.Join(dir, "not-there-yet")); err != nil {
		t.Errorf("a file in the temporary folder: %v", err)
	}
	if err := filelock.CheckLocal(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("a file in a folder that is not there passed")
	}
}

// A local folder may hold a link to a file elsewhere, and a file may be mounted by itself.
func TestCheckLocalOfLink(t *testing.T) {
	const procfs = 0x9fa0
	filelock.RemoteKinds[procfs] = "test"
	defer delete(filelock.RemoteKinds, procfs)
	path := filepath.Join(t.TempDir(), "state")
	if err := os.Symlink("/proc/self/status", path); err != nil {
		t.Fatal(err)
	}
	if err := filelock.CheckLocal(path); err == nil || !strings.Contains(err.Error(), path+" is on a test file system") {
		t.Errorf("a link to another file system: %v", err)
	}
}
