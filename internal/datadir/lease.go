package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leaf-id/leaf/internal/localfs"
	"github.com/leaf-id/leaf/worker"
)

// State opens the file of this slot as the state of a worker lease. registryKey tells
// registries apart across restarts; it ends up in the file, and so must hold no
// password. It is an error, wrapping [worker.ErrNewer], if a newer release wrote the
// file.
func (d *Dir) State(registryKey string) (*worker.State, error) {
	o := worker.StateOptions{Registry: registryKey}
	o.Identity, o.Unproven = identity(d.lock)
	if err := localfs.Check(d.lock.Name()); err != nil {
		o.Identity, o.Unproven = "", err // a lock there proves nothing
	}
	state, err := worker.OpenState(d.lock, o)
	if err != nil {
		return nil, fmt.Errorf("state file %s: %w", d.lock.Name(), err)
	}
	return state, nil
}

// Lock opens, or makes, a further file of the directory and locks it for as long as
// it stays open. It is an error if another process has it.
func (d *Dir) Lock(name string) (*os.File, error) {
	path := filepath.Join(d.path, name)
	if err := localfs.Check(path); err != nil {
		return nil, err
	}
	f, err := lockFile(path)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s is in use by another process on this data directory", path)
	}
	if err != nil {
		return nil, err
	}
	return f, syncDir(d.path)
}
