//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("held by another process")

// flock locks f for this process until f is closed, or says errLocked at once.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

// syncDir makes renames in the directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
