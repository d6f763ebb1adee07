//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package datadir

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

var errLocked = errors.New("held by another process")

// flock fails: there is no lock here that ends with the process.
func flock(*os.File) error {
	return fmt.Errorf("file locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// syncDir does nothing where a directory cannot be synced.
func syncDir(string) error { return nil }
