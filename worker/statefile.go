package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/leaf-id/leaf/internal/filelock"
)

// ErrInUse: another process has the file locked.
var ErrInUse = filelock.ErrInUse

// A StateFile remembers a lease across restarts of the process, see [OpenStateFile].
type StateFile struct {
	slots      slots
	closer     io.Closer
	identity   string // tells the file, on this boot, from every copy of it; empty: nothing does
	noIdentity error  // why identity is empty
	registry   string
	used       atomic.Bool // a keeper has it
}

// A savedLease is a lease as the file remembers it.
type savedLease struct {
	Identity string         `json:"identity"`
	Registry string         `json:"registry"`
	Ended    bool           `json:"ended,omitempty"` // it may be handed back, but no process may go on from it
	Worker   int64          `json:"worker"`
	Instance Instance       `json:"instance"`
	Term     int64          `json:"term"`
	Horizon  milliTime      `json:"horizon"` // as far as the registry is known to agree
	Safe     milliTime      `json:"safe"`    // whatever the registry has lost since, no other node is given a time before that
	Mark     milliTime      `json:"mark"`    // nothing from here on was issued
	Layouts  []ServedLayout `json:"layouts"`

	Incarnation string `json:"incarnation,omitempty"` // of the registry that agreed

	sealed  bool // it was this process's own, whose lease users are sealed
	refused bool // and its layouts were refused: Layouts are those of the record that the claim replaced
}

// OpenStateFile opens the state file at path, or creates it, and locks it until Close or the end of
// the process. It is for one [Keeper] at a time. The error
// wraps [ErrInUse] if another process has the file.
//
// The file proves that the process which held the lease in it is dead, if
//
//   - it is the very file that process wrote, on the same boot of the machine: it holds
//     the boot ID, its own device, inode and birth time;
//   - its lock, flock(2), which that process held for life, is free;
//   - its file system is local, so that the lock says something about all processes.
//
// The next keeper then hands the lease back, or continues it while the registry is away.
// Without the proof the lease is left to run out, and each start after a crash takes
// another worker ID: for a copy of the file, after a restart of the machine, on a network
// file system, where the boot ID is hidden, and on other systems than Linux. A file that
// is damaged says nothing either. No file is needed for IDs to be unique.
//
// The file must not be rolled back in place while the machine runs, nor a process or
// virtual machine be restored from a snapshot of its memory.
func OpenStateFile(path string) (*StateFile, error) {
	f, err := filelock.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the state file: %w", err)
	}
	s := &StateFile{slots: slots{file: f, size: stateSlot, version: stateVersion}, closer: f}
	if s.noIdentity = filelock.CheckLocal(path); s.noIdentity == nil {
		s.identity, s.noIdentity = identity(f)
	}
	return s, nil
}

// NewStateFile returns a state file in f, which no other process uses. identity
// tells f, as long as the machine runs, from every copy of it; an empty one proves nothing.
// [OpenStateFile] is what programs use; this is for tests with disks that fail.
func NewStateFile(f File, identity string) *StateFile {
	return &StateFile{slots: slots{file: f, size: stateSlot, version: stateVersion}, identity: identity}
}

// Close gives the file up. It comes after the keeper's end.
func (s *StateFile) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// restore returns the lease of the registry in the file. Without a lease, notice may say why the
// file does not help. An error ends the use of the file; it wraps [ErrNewer] if a newer release
// wrote it. A lease of another keeper in this process would look like that of a dead one.
func (s *StateFile) restore(registry string) (lease *savedLease, notice, err error) {
	if s.used.Swap(true) {
		return nil, nil, errors.New("another keeper of this process has it: open a state file for each")
	}
	defer func() {
		if err != nil {
			s.used.Store(false)
		}
	}()
	s.registry = registry
	text, err := s.slots.read()
	switch {
	case errors.Is(err, errDamaged):
		return nil, err, s.slots.erase()
	case err != nil || text == nil:
		return nil, nil, err
	}
	lease = new(savedLease)
	if err := json.Unmarshal(text, lease); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err), nil
	}
	switch {
	case lease.Registry != registry:
		return nil, fmt.Errorf("it is about a worker ID of another registry, %s", lease.Registry), nil
	case lease.Instance.IsZero() || lease.Mark.After(lease.Horizon.Time):
		return nil, errDamaged, nil
	}
	return lease, nil, nil
}

// proven reports whether the process that held the lease is known to be dead.
func (s *StateFile) proven(l *savedLease) bool {
	return l.sealed || s.identity != "" && l.Identity == s.identity
}

// save makes l durable.
func (s *StateFile) save(l savedLease) error {
	l.Identity, l.Registry = s.identity, s.registry
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return s.slots.write(text)
}

// end makes it durable that no process continues l. The caller issued nothing from its mark on.
func (s *StateFile) end(l savedLease) error {
	if s == nil {
		return nil
	}
	l.Ended = true
	return s.save(l)
}
