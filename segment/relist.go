package segment

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// A relisting is a future check of the store. Callers with unknown tags share it while too many
// others are looked up: it lists their tags if the store has them.
type relisting struct {
	wanted map[string]struct{} // at most maxListed; s.mu is held until the check begins
	done   chan struct{}       // closed when the check has ended
}

// relist asks for a check that begins after this call, and some time after the last one.
// The end of the check closes the returned channel; nil: the last check failed. s.mu is held.
func (s *Set) relist(tag string) <-chan struct{} {
	if s.lastCheck != nil {
		return nil
	}
	if s.nextList == nil {
		s.nextList = &relisting{make(map[string]struct{}), make(chan struct{})}
		if !s.checking {
			time.AfterFunc(s.relistPause()-time.Since(s.checked), s.checkSoon)
		}
	}
	if len(s.nextList.wanted) < maxListed {
		s.nextList.wanted[tag] = struct{}{}
	}
	return s.nextList.done
}

// relistPause returns how long after a check the next one may begin for callers who wait: soon
// enough for them, and the store is busy with checks for half of the time at most.
func (s *Set) relistPause() time.Duration { return max(s.opts.Wait/4, s.took) }

// lastTook is how long the latest check took.
func (s *Set) lastTook() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took
}

// beginRelist returns the tags that callers wait for. The check that calls it must list them, and
// then call end.
func (s *Set) beginRelist() (wanted map[string]struct{}, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.nextList
	s.nextList, s.checking = nil, true
	if r == nil {
		r = &relisting{done: make(chan struct{})}
	}
	start := time.Now()
	return r.wanted, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.checking, s.checked = false, time.Now()
		s.took = s.checked.Sub(start)
		if s.nextList != nil {
			time.AfterFunc(s.relistPause(), s.checkSoon)
		}
		close(r.done)
	}
}

// open returns the buffer of tag, and makes a missing one. Where too many unknown tags
// are looked up, it waits for the next listing.
func (s *Set) open(ctx context.Context, tag string) (*Buffer, error) {
	if err := CheckTagName(tag); err != nil {
		return nil, err
	}
	b, relisted, err := s.tryOpen(tag)
	if relisted == nil {
		return b, err
	}
	timer := time.NewTimer(s.opts.Wait)
	defer timer.Stop()
	select {
	case <-relisted:
		b, _, err = s.tryOpen(tag)
	case <-timer.C:
	case <-ctx.Done():
		err = fmt.Errorf("wait for a listing with %q: %w", tag, context.Cause(ctx))
	}
	return b, err
}

// tryOpen is open without the wait. With an error it returns what to wait for, nil if that does
// not help.
func (s *Set) tryOpen(tag string) (b *Buffer, relisted <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, fmt.Errorf("tag %q: %w", tag, leaf.ErrClosed)
	}
	if b := s.tags.get(tag); b != nil { // another caller was faster
		return b, nil, nil
	}
	b = newBuffer(tag, s.each)
	if !s.probablyListed(tag) {
		if err := s.admit(b); err != nil {
			return nil, s.relist(tag), err
		}
	}
	s.tags.put(b)
	return b, nil, nil
}

// takeLookupSlot waits for one of the places of unknown tags. taken is false if the latest listing has
// the tag: it then needs no place.
func (s *Set) takeLookupSlot(ctx context.Context, tag string) (taken bool, err error) {
	for {
		s.mu.Lock()
		if s.probablyListed(tag) {
			s.mu.Unlock()
			return false, nil
		}
		select {
		case s.lookupSlots <- struct{}{}:
			s.mu.Unlock()
			return true, nil
		default:
		}
		relisted := s.relist(tag)
		s.mu.Unlock()
		select {
		case s.lookupSlots <- struct{}{}:
			return true, nil
		case <-relisted:
		case <-ctx.Done():
			return false, errNoPlace(ctx)
		}
	}
}

func errNoPlace(ctx context.Context) error {
	return fmt.Errorf("wait for a place among the calls to the store: %w", ctx.Err())
}
