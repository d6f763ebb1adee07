// Package filelock locks files against the other processes of this machine.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrInUse: another process has the file locked.
var ErrInUse = errors.New("in use by another process")

// OpenLocal is [Open] for a new file that survives a crash of the machine. It fails if locks prove
// nothing there, see [CheckLocal].
func OpenLocal(path string) (*os.File, error) {
	if err := CheckLocal(path); err != nil {
		return nil, err
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := SyncFolder(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SyncFolder has the names of new and renamed files in a folder survive a crash of the machine.
func SyncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Open opens the file at path, or creates it, and locks it until it is closed or the process ends. If
// another process has the lock, the error wraps [ErrInUse].
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // close-on-exec, as always in package os
	if err != nil {
		return nil, err
	}
	err = Lock(f)
	switch {
	case errors.Is(err, ErrInUse):
		err = fmt.Errorf("%s is %w", path, err)
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, err)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// CheckLocal reports why a lock on the file at path proves nothing about processes on other
// machines: its file system is a network file system (NFS, SMB, 9p, cluster file systems), or may
// be one (FUSE). The file need not exist, its folder must.
func CheckLocal(path string) error {
	for _, p := range []string{filepath.Dir(path), path} { // the file may be a link, or mounted by itself
		kind, err := remoteKind(p)
		switch {
		case p == path && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("look at the file system of %s: %w", p, err)
		case kind != "":
			return fmt.Errorf("%s is on a %s file system, where file locks prove nothing: use a folder on a local disk", p, kind)
		}
	}
	return nil
}
