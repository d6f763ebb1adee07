//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package segment

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile locks f for this process until f is closed.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock it against other processes: %w", err)
	}
	return nil
}
