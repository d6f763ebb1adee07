// Package datadir is a server's directory of local state. Several processes of one machine
// may share a directory; each holds one of its slots for as long as it lives, and with it
// the files of that slot.
//
//	worker-N           the state of its worker lease, locked by the process in slot N
//	counters-N-STORE   its knowledge of the counters of a store, see [segment.OpenMemory]
//
// A process that opens what is known of a store takes over what processes in other slots
// knew that have ended. What running ones know does not help it.
//
// The locks are flock(2): they end with the process, however it ends. They prove
// nothing between machines, so the directory belongs on a local disk.
package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

const (
	maxSlots = 1024             // more processes than make sense on one directory
	lockWait = 10 * time.Second // for another process that opens its memory
)

// A Dir is an open data directory and one slot of it. Its methods are safe for concurrent use.
type Dir struct {
	path  string
	slot  int
	state *worker.StateFile

	mu       sync.Mutex
	memories map[string]*segment.FileMemory // by store
	closed   bool
}

// Open opens the directory, or makes it (mode 0700), and takes the first free slot.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory %s: %w", path, err)
	}
	for slot := range maxSlots {
		state, err := worker.OpenStateFile(filepath.Join(path, fmt.Sprintf("worker-%d", slot)))
		if err == nil {
			return &Dir{path: path, slot: slot, state: state, memories: make(map[string]*segment.FileMemory)}, nil
		}
		if !errors.Is(err, worker.ErrInUse) {
			return nil, fmt.Errorf("open data directory %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("open data directory %s: all of its %d slots are in use by running processes", path, maxSlots)
}

// State returns the state file of the slot. Close closes it.
func (d *Dir) State() *worker.StateFile { return d.state }

// Memory returns this process's memory of the counters of one store. The text store, such as a URL,
// identifies it. Close closes the memory.
func (d *Dir) Memory(store string, logger *slog.Logger) (*segment.FileMemory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("open the memory of counters: %w", os.ErrClosed)
	}
	if m, ok := d.memories[store]; ok {
		return m, nil
	}
	if len(d.memories) == 0 {
		if err := d.upgrade(cmp.Or(logger, slog.New(slog.DiscardHandler))); err != nil {
			return nil, err
		}
	}
	m, err := d.openMemory(suffix(store), logger)
	if err != nil {
		return nil, err
	}
	d.memories[store] = m
	return m, nil
}

// suffix is how the names of a store's memories end.
func suffix(store string) string {
	hash := fnv.New64a()
	hash.Write([]byte(store))
	return fmt.Sprintf("-%016x", hash.Sum64())
}

// counters names the memory of this slot of a store.
func (d *Dir) counters(store string) string {
	return fmt.Sprintf("counters-%d%s", d.slot, suffix(store))
}

// openMemory opens the memory of this slot whose name ends so, and takes over those of other
// slots whose processes have ended.
func (d *Dir) openMemory(suffix string, logger *slog.Logger) (_ *segment.FileMemory, err error) {
	lock, err := d.lockMemories()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	own := fmt.Sprintf("counters-%d%s", d.slot, suffix)
	m, err := segment.OpenMemory(filepath.Join(d.path, own), logger)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(d.path)
	for _, f := range files {
		if name := f.Name(); err == nil && name != own && strings.HasPrefix(name, "counters-") && strings.HasSuffix(name, suffix) {
			err = takeOver(m, filepath.Join(d.path, name), logger)
		}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// takeOver moves the content of the memory at path to m, unless a process is using it.
func takeOver(m *segment.FileMemory, path string, logger *slog.Logger) error {
	other, err := segment.OpenMemory(path, logger)
	if err != nil {
		return nil // it is in use, or damaged: then OpenMemory leaves it to its own slot
	}
	defer other.Close()
	if err := m.Merge(other); err != nil {
		return err
	}
	return os.Remove(path)
}

// lockMemories keeps other processes from opening memories meanwhile.
func (d *Dir) lockMemories() (*os.File, error) {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		lock, err := filelock.OpenLocal(filepath.Join(d.path, "counters.lock"))
		if err == nil || !errors.Is(err, worker.ErrInUse) || time.Now().After(deadline) {
			return lock, err
		}
	}
}

// Lock opens, or makes, a further file of the directory and locks it for as long as it stays open.
func (d *Dir) Lock(name string) (*os.File, error) {
	f, err := filelock.OpenLocal(filepath.Join(d.path, name))
	if errors.Is(err, worker.ErrInUse) {
		return nil, fmt.Errorf("%w on this data directory", err)
	}
	return f, err
}

// Close syncs the memories to the disk and frees the slot.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var err error
	for _, m := range d.memories {
		err = errors.Join(err, m.Close())
	}
	return errors.Join(err, d.state.Close())
}
