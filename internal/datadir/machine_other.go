//go:build !linux

package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/worker"
)

// LockMachine locks a name against all other processes with the same folder for temporary files,
// which on some systems are those of the same user, until the caller closes the result or the
// process ends.
func LockMachine(name string) (io.Closer, error) {
	f, err := filelock.OpenLocal(filepath.Join(os.TempDir(), "leaf-"+name))
	if errors.Is(err, worker.ErrInUse) {
		return nil, fmt.Errorf("%s is %w on this machine", name, worker.ErrInUse)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}
