package worker

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A State remembers a lease across restarts of the process, in a [File].
type State struct {
	slots    slots
	identity string
	registry string
	found    *saved // by OpenState; nil: nothing of use
	notice   error
	unproven error
}

// StateOptions says what a state file is.
type StateOptions struct {
	// Identity tells this file, on this boot of this machine, from every copy of it:
	// the boot ID, and the device, inode and birth time of the file that is open. A
	// lease that is found under the same identity was held by a process that
	// is dead, because the file's lock could be had. Empty: nothing is proven.
	Identity string

	// Unproven says why Identity is empty, for people.
	Unproven error

	// Registry tells registries apart, such as the URL without credentials: a lease
	// of another registry is not touched.
	Registry string
}

// saved is what is remembered of a lease.
type saved struct {
	Identity string         `json:"identity"`
	Registry string         `json:"registry"`
	Ended    bool           `json:"ended,omitempty"` // it may be handed back, but nobody may go on from it
	Worker   int64          `json:"worker"`
	Instance Instance       `json:"instance"`
	Term     int64          `json:"term"`
	Horizon  int64          `json:"horizon"` // as far as the registry was heard to agree
	Safe     int64          `json:"safe"`    // whatever the registry has lost since, nobody else is given a time before that
	Mark     int64          `json:"mark"`    // nothing from here on was issued
	Layouts  []ServedLayout `json:"layouts"`

	sealed bool // it was this process's own, whose generators are sealed
}

// OpenState reads what f remembers. f must be locked against other processes and
// stay open and locked until the process ends. A file that is empty, damaged or
// somebody else's remembers nothing, see [State.Notice]. The error wraps
// [ErrNewer] if a newer release wrote the file.
func OpenState(f File, o StateOptions) (*State, error) {
	s := &State{slots: slots{file: f, size: stateSlot, version: stateVersion}, identity: o.Identity, registry: o.Registry, unproven: o.Unproven}
	text, err := s.slots.read()
	switch {
	case errors.Is(err, errDamaged):
		s.notice = err
		if err := s.slots.erase(); err != nil {
			return nil, err
		}
		return s, nil
	case err != nil:
		return nil, err
	case text == nil:
		return s, nil
	}
	found := new(saved)
	if err := json.Unmarshal(text, found); err != nil {
		s.notice = fmt.Errorf("%w: %w", errDamaged, err)
		return s, nil
	}
	switch {
	case found.Registry != o.Registry:
		s.notice = fmt.Errorf("it is about a worker ID of another registry, %s", found.Registry)
	case found.Instance.IsZero() || found.Mark > found.Horizon:
		s.notice = errDamaged
	default:
		s.found = found
	}
	return s, nil
}

// Notice returns why what the file held is of no use, nil if there is nothing to say.
func (s *State) Notice() error { return s.notice }

// proven reports whether the process that held the lease is known to be dead.
func (s *State) proven(l *saved) bool {
	return l.sealed || s.identity != "" && l.Identity == s.identity
}

// save makes l durable.
func (s *State) save(l saved) error {
	l.Identity, l.Registry = s.identity, s.registry
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return s.slots.write(text)
}

// end makes it durable that nobody goes on from l, of which nothing from its mark on
// was issued.
func (s *State) end(l saved) error {
	if s == nil {
		return nil
	}
	l.Ended = true
	return s.save(l)
}
