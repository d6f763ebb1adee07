// Package datadir is a node's directory of local state. Several processes of one
// machine may share a directory; each holds one of its slots for as long as it
// lives, and with it the files of that slot.
//
//	worker-N    locked by the process in slot N; the state of its worker lease
//	marks-N     what the process in slot N knows of the counters, see [Marks]
//	marks.lock  locked while somebody changes a marks file that others write to
//
// The locks are flock(2): they end with the process, however it ends. They prove
// nothing between machines, so that the directory belongs on a local disk.
package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// maxSlots is more processes than make sense on one directory.
const maxSlots = 1024

// A Dir is an open data directory and one slot of it. Its methods are safe for
// concurrent use.
type Dir struct {
	path string
	slot int
	lock *os.File // worker-N

	mu   sync.Mutex
	log  *markLog // nil until Marks is called
	done bool
}

// Open opens the directory, makes it (mode 0700) if there is none, and takes the
// first slot that no other process holds.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory %s: %w", path, err)
	}
	for slot := range maxSlots {
		lock, err := lockFile(filepath.Join(path, fmt.Sprintf("worker-%d", slot)))
		if err == nil {
			return &Dir{path: path, slot: slot, lock: lock}, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("open data directory %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("open data directory %s: all of its %d slots are in use by running processes", path, maxSlots)
}

// lockFile opens, or makes, the file and locks it. Its content stays as it is. The
// error is errLocked when somebody else holds the lock.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // close-on-exec, as package os always does
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// Slot returns the number of the slot: 0 for the only process on the directory.
func (d *Dir) Slot() int { return d.slot }

// Path returns the path that the directory was opened by.
func (d *Dir) Path() string { return d.path }

// Marks returns the memory of the counters of one store. storeKey tells stores
// apart across restarts, such as its URL; it ends up in a file, and so must hold no
// password. It is an error if a file of the directory was written by a newer
// release. The logger of the first call serves all; nil discards.
func (d *Dir) Marks(storeKey string, logger *slog.Logger) (*Marks, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return nil, fmt.Errorf("open the marks: %w", os.ErrClosed)
	}
	if d.log == nil {
		log, err := openMarkLog(d.path, d.slot, logger)
		if err != nil {
			return nil, fmt.Errorf("open the marks: %w", err)
		}
		d.log = log
	}
	return &Marks{store: storeKey, log: d.log}, nil
}

// Close writes the marks through to the disk and frees the slot.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return nil
	}
	d.done = true
	var err error
	if d.log != nil {
		err = d.log.close()
	}
	return errors.Join(err, d.lock.Close())
}
