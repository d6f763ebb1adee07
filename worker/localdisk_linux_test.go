package worker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leaf-id/leaf/worker"
)

func TestRemoteKinds(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x65735546: "FUSE", 0x01021997: "9p",
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", 0x794c7630: "", // ext4, XFS, btrfs, tmpfs, overlay
	} {
		if got := worker.RemoteKinds[magic]; got != want {
			t.Errorf("file system %#x is %q, want %q", magic, got, want)
		}
	}
}

func TestCheckLocal(t *testing.T) {
	dir := t.TempDir()
	if err := worker.CheckLocal(filepath.Join(dir, "not-there-yet")); err != nil {
		t.Errorf("a file in the temporary folder: %v", err)
	}
	if err := worker.CheckLocal(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("a file in a folder that is not there passed")
	}
}

// A local folder may hold a link to a file elsewhere, and a file may be mounted by itself.
func TestCheckLocalOfLink(t *testing.T) {
	const procfs = 0x9fa0
	worker.RemoteKinds[procfs] = "test"
	defer delete(worker.RemoteKinds, procfs)
	path := filepath.Join(t.TempDir(), "state")
	if err := os.Symlink("/proc/self/status", path); err != nil {
		t.Fatal(err)
	}
	if err := worker.CheckLocal(path); err == nil || !strings.Contains(err.Error(), path+" is on a test file system") {
		t.Errorf("a link to another file system: %v", err)
	}
}

// The parts of the identity are those of package unix.
func TestIdentityIsThatOfTheFile(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "state"))
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("boot %s device %d:%d inode %d born %d.%09d", boot[:len(boot)-1],
		st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec)
	if got, err := worker.Identity(f); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestIdentityTellsFileFromCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	identity := func() string {
		f := openFile(t, path)
		defer f.Close()
		id, err := worker.Identity(f)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := identity()
	if again := identity(); again != first {
		t.Errorf("the same file is %q and %q", first, again)
	}
	if err := errors.Join(os.Rename(path, path+"-old"), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if identity() == first {
		t.Error("a copy in the place of the file has its identity")
	}
}
