//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filelock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Supported reports that this system lacks locks that end with the process.
const Supported = false

// Lock fails.
func Lock(*os.File) error {
	return fmt.Errorf("file locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
