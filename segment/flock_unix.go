//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile locks f for this process until f is closed.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock it against other processes: %w", err)
	}
	return nil
}

// syncFolder makes the file at path durable in its folder.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(fsync(folder), folder.Close())
}
