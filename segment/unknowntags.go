package segment

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// A tag is unknown if it was neither in the latest listing of the store nor ever
// granted anything: callers may ask for any name. The cost of unknown tags is bounded, so
// known tags are served however many others callers ask for.
const maxUnknown = 1024 // buffers of unknown tags

// maxListed is how many tags of a listing are kept by name, and maxHashed how many more as hashes.
// Only the cost of a tag depends on the hashes: one with the hash of another is looked up like a
// listed one, and the store does not know it.
var maxListed, maxHashed = 100_000, 2_000_000

// An unknownTags is the buffers of unknown tags. Its lock is the innermost.
type unknownTags struct {
	mu      sync.Mutex
	buffers map[*Buffer]struct{} // at most maxUnknown
}

// add counts a buffer, or refuses it.
func (u *unknownTags) add(b *Buffer) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.buffers) >= maxUnknown {
		return false
	}
	if u.buffers == nil {
		u.buffers = make(map[*Buffer]struct{})
	}
	u.buffers[b] = struct{}{}
	return true
}

// remove ends the counting of a buffer.
func (u *unknownTags) remove(b *Buffer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.buffers, b)
}

// admit counts the buffer of an unknown tag, or refuses it. Its first grant ends that.
func (s *Set) admit(b *Buffer) error {
	if !s.unknownTags.add(b) {
		return fmt.Errorf("tag %q: %w: the store has not said yet whether it has %d other tags: ask again later",
			b.tag, leaf.ErrExhausted, maxUnknown)
	}
	time.AfterFunc(unknownFor, func() { s.review(b) })
	return nil
}

// review ends the counting of a buffer as one of an unknown tag, once the store has
// answered or callers do not ask any more, and looks again later where neither is so.
func (s *Set) review(b *Buffer) {
	if b.expire(time.Now()); !b.confirmed() {
		time.AfterFunc(unknownFor, func() { s.review(b) })
		return
	}
	s.unknownTags.remove(b)
}

// acquire waits for a place among the calls to the store. leave gives it back.
func (s *Set) acquire(ctx context.Context, b *Buffer) (leave func(), err error) {
	var taken []chan struct{}
	leave = func() {
		for _, places := range taken {
			<-places
		}
	}
	if b.account.grants == 0 {
		slot, err := s.takeLookupSlot(ctx, b.tag)
		if err != nil {
			return nil, err
		}
		if slot {
			taken = append(taken, s.lookupSlots)
		}
	}
	select {
	case s.places <- struct{}{}:
		taken = append(taken, s.places)
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, errNoPlace(ctx)
	}
}

// lists reports whether the latest listing had tag.
func (s *Set) lists(tag string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.listed[tag]
	return ok
}

// probablyListed reports whether the latest listing probably had tag; s.mu is held.
func (s *Set) probablyListed(tag string) bool {
	if _, ok := s.listed[tag]; ok {
		return true
	}
	_, ok := slices.BinarySearch(s.hashed, s.hash(tag))
	return ok
}

func (s *Set) hash(tag string) uint64 { return maphash.String(s.tags.seed, tag) }

// Has reports, without asking the store, whether it is known to have tag: the latest listing had
// it, or the store has granted IDs of it.
func (s serverSet) Has(tag string) bool {
	b := s.tags.get(tag)
	return b != nil && b.loaded() || s.lists(tag)
}

// confirmed reports whether the store has said whether it has the tag, or the buffer has ended.
func (b *Buffer) confirmed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end != nil || b.account.grants > 0
}

// logFailure logs the first of several failed calls to the store. Tags without a grant so far
// may be very many: it logs one of them a second. b.mu is held.
func (b *Buffer) logFailure(now time.Time, err error) {
	args := []any{"tag", b.tag, "err", err}
	if b.opts.set != nil && b.account.grants == 0 {
		others, ok := b.opts.set.failures.pass(now)
		if !ok {
			return
		}
		if others > 0 {
			args = append(args, "other_tags", others)
		}
	}
	b.health.logged = true
	b.opts.Logger.Warn("store call failed", args...)
}

// A throttle lets one event a second pass. Its zero value is ready to use.
type throttle struct {
	mu   sync.Mutex
	next time.Time
	held int
}

// pass reports whether an event may pass, and how many were held back since the last one that did.
func (t *throttle) pass(now time.Time) (held int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.next) {
		t.held++
		return 0, false
	}
	held, t.held, t.next = t.held, 0, now.Add(time.Second)
	return held, true
}

// Check reports why tag has no IDs: the store does not know it, or does not answer. It uses up
// no ID. It looks up a possibly new tag as [Set.Next] does.
func (s *Set) Check(ctx context.Context, tag string) error {
	if s.lists(tag) {
		return nil
	}
	b, err := s.buffer(ctx, tag)
	if err != nil {
		return err
	}
	return b.awaitLoaded(ctx)
}

// awaitLoaded waits until the store has granted IDs of the tag.
func (b *Buffer) awaitLoaded(ctx context.Context) error {
	timer := time.NewTimer(b.opts.Wait)
	defer timer.Stop()
	for !b.loaded() {
		if _, err := b.await(ctx, b.current.Load(), 1, true, timer); err != nil {
			return err
		}
	}
	return nil
}
