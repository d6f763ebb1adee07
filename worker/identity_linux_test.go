package worker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/worker"
)

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

// A lock on a network file system says nothing of processes on other machines, so a file there
// proves nothing.
func TestStateFileOnRemoteFileSystem(t *testing.T) {
	dir := t.TempDir()
	proves := func() bool {
		s, err := worker.OpenStateFile(filepath.Join(dir, "state"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Proves()
	}
	if !proves() {
		t.Error("a file on a local disk proves nothing")
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	filelock.RemoteKinds[uint32(fs.Type)] = "remote"
	defer delete(filelock.RemoteKinds, uint32(fs.Type))
	if proves() {
		t.Error("a file on a remote file system proves that no other machine has it")
	}
}
