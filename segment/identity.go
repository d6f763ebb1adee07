package segment

import (
	"errors"
	"fmt"
	"sync"
)

// ErrForeignStore is wrapped where another store answers than the one that the earlier IDs
// came from: it was emptied and created again, or the name of the store leads elsewhere.
var ErrForeignStore = errors.New("another store answers")

// An Expecter is a [Store] of several servers that asks another one where a server belongs
// to another store.
type Expecter interface {
	// Expect is called before the first Advance, with the identity of the store whose
	// grants alone are issued.
	Expect(identity string)
}

// A storeID is the identity of the store of a set, or of a buffer of its own.
type storeID struct {
	mu    sync.Mutex
	known string // empty: not known yet
}

// The memory keeps the identity of the store under a name that no tag has.
const identityTag = "\tstore"

// StoreID returns the identity of the store, once it has granted IDs to this process or, with
// [SetOptions.Memory], to an earlier one. Empty: it is not known yet, or the store has no identity.
func (s *Set) StoreID() string {
	s.each.id.mu.Lock()
	defer s.each.id.mu.Unlock()
	return s.each.id.known
}

// recallStore takes up which store is known.
func (s *shared) recallStore() {
	remembered := s.Memory.Recall(identityTag)[""].Server
	s.id.known = remembered
	if s.StoreID != "" {
		s.id.known = s.StoreID
	}
	if s.id.known != remembered {
		s.rememberStore()
	}
	if e, ok := s.store.(Expecter); ok && s.id.known != "" {
		e.Expect(s.id.known)
	}
}

// checkStore reports a grant of another store than the known one. A grant without an
// identity passes, unless the options demand one: its store has no place for an identity, or
// a server of an older release has passed it on.
func (s *shared) checkStore(grant Grant) error {
	s.id.mu.Lock()
	defer s.id.mu.Unlock()
	switch {
	case grant.Store == s.id.known, grant.Store == "" && s.StoreID == "":
		return nil
	case s.id.known == "":
		s.id.known = grant.Store
		s.rememberStore()
		return nil
	}
	return fmt.Errorf("%w: its identity is %q, that of the known store is %q", ErrForeignStore, grant.Store, s.id.known)
}

// keptStore returns an identity from the memory of the known one: a driver makes a text for each grant.
func (s *shared) keptStore(identity string) string {
	s.id.mu.Lock()
	defer s.id.mu.Unlock()
	if identity == s.id.known {
		return s.id.known
	}
	return identity
}

func (s *shared) rememberStore() {
	if err := s.Memory.Remember(identityTag, "", Mark{Server: s.id.known}); err != nil {
		s.Logger.Warn("the identity of the store will not be remembered across a restart", "err", err)
	}
}
