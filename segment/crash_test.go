//go:build unix

package segment

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A crashDisk is a folder of real files on a disk that, when the machine crashes, loses any of the
// unsynced names and contents. It takes part in each sync.
type crashDisk struct {
	t       *testing.T
	dir     string
	names   map[string]uint64 // synced names and their inodes
	synced  map[uint64][]byte // synced contents, by inode
	written map[uint64][]byte // the latest contents, also of files without a name
	crashed func(dir string)  // looks at a folder after a crash
}

func newCrashDisk(t *testing.T, crashed func(dir string)) *crashDisk {
	d := &crashDisk{t: t, dir: t.TempDir(), names: map[string]uint64{}, synced: map[uint64][]byte{}, written: map[uint64][]byte{}, crashed: crashed}
	fsync = d.sync
	t.Cleanup(func() { fsync = (*os.File).Sync })
	return d
}

func inode(info os.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Ino) }

// look returns the names in the folder, and reads the files.
func (d *crashDisk) look() (names map[string]uint64) {
	names = map[string]uint64{}
	entries, err := os.ReadDir(d.dir)
	for _, e := range entries {
		info, infoErr := e.Info()
		text, readErr := os.ReadFile(filepath.Join(d.dir, e.Name()))
		if infoErr != nil || readErr != nil {
			d.t.Fatal(infoErr, readErr)
		}
		names[e.Name()] = inode(info)
		d.written[inode(info)] = text
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return names
}

func (d *crashDisk) sync(f *os.File) error {
	d.crash()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if names := d.look(); info.IsDir() {
		d.names = names
	} else {
		d.synced[inode(info)] = d.written[inode(info)]
	}
	d.crash()
	return nil
}

// crash lists the possible contents after a crash: the old or the new names, and of each file the
// synced content alone, or with all or half of the later writes.
func (d *crashDisk) crash() {
	for _, names := range []map[string]uint64{d.look(), maps.Clone(d.names)} {
		for kept := range 3 {
			dir, err := os.MkdirTemp(d.t.TempDir(), "")
			if err != nil {
				d.t.Fatal(err)
			}
			for name, ino := range names {
				synced, written := d.synced[ino], d.written[ino]
				text := written[:len(synced)+(len(written)-len(synced))*kept/2]
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					d.t.Fatal(err)
				}
			}
			d.crashed(dir)
			if err := os.RemoveAll(dir); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// Whenever the machine crashes, the memory opens again. It has no invented mark, and no mark from
// before its last rewrite or Close.
func TestMemoryOnCrashingDisk(t *testing.T) {
	const tags = 3
	var least, latest int64 // marks of each tag: synced, and remembered
	looks := 0
	d := newCrashDisk(t, func(dir string) {
		defer func(used func(*os.File) error) { fsync = used }(fsync)
		fsync = (*os.File).Sync
		m, err := OpenMemory(filepath.Join(dir, "counters"), nil)
		if err != nil {
			t.Fatalf("with marks up to %d: %v", latest, err)
		}
		defer m.Close()
		for tag := range tags {
			if got := m.Recall(fmt.Sprint("tag", tag))[""].High; got < least || got > latest {
				t.Fatalf("tag %d is remembered up to %d, want %d to %d", tag, got, least, latest)
			}
		}
		looks++
	})
	for life := range 3 {
		m, err := OpenMemory(filepath.Join(d.dir, "counters"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for file, done := m.file, false; !done; {
			latest++
			for tag := range tags {
				remember(t, m, fmt.Sprint("tag", tag), "", latest, longServer)
			}
			if m.file != file {
				least = latest - 1
			}
			if done = life == 0 || m.file != file; done { // the first life is too short for a rewrite
				d.crash()
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		least = latest
		d.crash()
	}
	t.Logf("looked at what %d crashes left", looks)
}
