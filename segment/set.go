package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// unknownFor is how long a tag that the store does not know is refused without asking again.
const unknownFor = time.Second

// A Set hands out the IDs of every tag of a store: a [Buffer] each, made when the
// tag is first asked for. Its methods are safe for concurrent use.
type Set struct {
	store Store
	opts  SetOptions
	each  *shared // what every buffer has
	tags  *table

	places      chan struct{} // holds one for each call to the store in flight
	lookupSlots chan struct{} // has one entry for each call for an unknown tag
	failures    throttle      // bounds log lines about tags without a grant

	changing chan struct{} // holds one while a Forget is under way

	unknownTags unknownTags // buffers of tags that may not exist

	mu        sync.Mutex
	closed    bool                // no buffer is made any more
	lastCheck error               // how the latest look at the store ended
	listed    map[string]struct{} // the tags of the latest listing, at most maxListed
	hashed    []uint64            // sorted hashes of its other tags, at most maxHashed
	whole     bool                // these are all of its tags
	forms     forms               // of tags in that listing
	digest    string              // the store's digest just before it, or empty
	nextList  *relisting          // that callers wait for, or nil
	checking  bool                // a check is under way
	checked   time.Time           // when the latest one ended
	took      time.Duration       // by the latest one

	ready  chan struct{}
	wake   chan struct{} // holds one when the store must be checked now
	cancel context.CancelFunc
	done   chan struct{} // closed when watch has returned
}

// SetOptions configures a [Set]. The zero value of a field means its default, and so does a negative
// number.
type SetOptions struct {
	Options // of each buffer

	// MaxCalls bounds the calls to the store in flight over all tags; default 64. Half of
	// them at most are for tags that the store may not have.
	MaxCalls int

	// CheckInterval is how often the tags in use are compared with the store, to
	// notice removed ones and changed steps; default 30 s. Where a comparison takes more than
	// 1/200 of it, as with a million tags, the pauses grow, to five minutes at most.
	CheckInterval time.Duration
}

// NewSet returns a set over store and starts the goroutine that watches its tags;
// [Set.Close] ends it.
func NewSet(store Store, opts *SetOptions) *Set {
	var o SetOptions
	if opts != nil {
		o = *opts
	}
	o.Options = o.Options.withDefaults()
	o.MaxCalls = cmp.Or(max(0, o.MaxCalls), DefaultMaxCalls)
	o.CheckInterval = cmp.Or(max(0, o.CheckInterval), DefaultCheckInterval)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{
		store:       store,
		opts:        o,
		tags:        newTable(),
		places:      make(chan struct{}, o.MaxCalls),
		lookupSlots: make(chan struct{}, max(1, o.MaxCalls/2)),
		changing:    make(chan struct{}, 1),
		ready:       make(chan struct{}),
		wake:        make(chan struct{}, 1),
		cancel:      cancel,
		done:        make(chan struct{}),
	}
	s.each = newShared(store, s, o.Options)
	go s.watch(ctx)
	return s
}

// Next returns the next ID of tag; see [Buffer.Next]. A name that cannot be a tag
// is an error wrapping [leaf.ErrInvalid].
func (s *Set) Next(ctx context.Context, tag string) (int64, error) {
	b := s.tags.get(tag)
	if b == nil {
		var err error
		if b, err = s.open(ctx, tag); err != nil {
			return 0, err
		}
	}
	return b.Next(ctx)
}

// Take appends n IDs of tag to dst; see [Buffer.Take].
func (s *Set) Take(ctx context.Context, tag string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	b, err := s.buffer(ctx, tag)
	if err != nil {
		return dst, err
	}
	return b.Take(ctx, dst, n)
}

func (s *Set) buffer(ctx context.Context, tag string) (*Buffer, error) {
	if b := s.tags.get(tag); b != nil {
		return b, nil
	}
	return s.open(ctx, tag)
}

// checkSoon asks for a check of the store now.
func (s *Set) checkSoon() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forget drops b, whose tag the store does not know, when it has been refused for long enough.
func (s *Set) forget(b *Buffer) {
	time.AfterFunc(unknownFor, func() { s.tags.remove(b) })
}

// Forget runs change, which lowers or deletes tag's counter in the store. Without Forget that would
// look like a store that lost writes. It drops the stock of the tag, runs change, and forgets the
// counter. Calls for the tag fail meanwhile with [leaf.ErrExhausted]. It returns an error of change
// unchanged, and then remembers the counter.
func (s serverSet) Forget(tag string, change func() error) error {
	s.changing <- struct{}{}
	defer func() { <-s.changing }()
	err := fmt.Errorf("tag %q: %w: its counter is being changed", tag, leaf.ErrExhausted)
	closed := newBuffer(tag, s.each) // keeps a new one away until the end
	closed.abandon(err)
	s.mu.Lock() // or a first call under way would put its buffer in the place of this one
	old := s.tags.put(closed)
	s.mu.Unlock()
	if old != nil {
		old.abandon(err)
	}
	defer s.tags.remove(closed)
	if err := change(); err != nil {
		return err
	}
	return s.opts.Memory.Forget(tag)
}

// A serverSet has the methods that only servers and relays need.
type serverSet struct{ *Set }

// Server returns the set with further methods for Leaf's own server and client.
func (s *Set) Server() serverSet { return serverSet{s} }

// Known returns one past the highest ID of tag that the store granted; 0 if the memory does not
// know the tag.
func (s serverSet) Known(tag string) int64 {
	var high int64
	for source, mark := range s.opts.Memory.Recall(tag) {
		if !isPeriod(source) { // its counter is not that of the tag
			high = max(high, mark.High)
		}
	}
	return high
}

// Ready is closed once the store has answered for the first time.
func (s *Set) Ready() <-chan struct{} { return s.ready }

// StoreErr returns the error of the latest check of the store, or nil. A set checks its store from
// the beginning until the first success, and then every [SetOptions.CheckInterval]; more often
// while the store is unfit.
func (s serverSet) StoreErr() error { return s.latestErr() }

func (s *Set) latestErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastCheck
}

// Unfit returns the reason why an operator must mend the store before callers run out of IDs, or
// nil while every tag in use has stock.
func (s serverSet) Unfit() error {
	err := s.latestErr()
	if err == nil || !isUnfit(err) {
		return nil
	}
	used := false
	for b := range s.tags.all() {
		if used = true; !b.stocked() {
			return err
		}
	}
	if !used {
		return err
	}
	return nil
}

// Stats returns a snapshot of every tag in use, sorted by name.
func (s *Set) Stats() []Stats {
	var all []Stats
	for b := range s.tags.all() {
		all = append(all, b.Stats())
	}
	slices.SortFunc(all, func(a, b Stats) int { return strings.Compare(a.Tag, b.Tag) })
	return all
}

// Close closes all buffers. It gives their rest back as far as the store and ctx allow; see
// [Buffer.Close].
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.cancel()
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	failed := 0
	places := make(chan struct{}, s.opts.MaxCalls)
	for b := range s.tags.all() {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			err := b.Close(ctx)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failed++; failed <= maxCloseErrors {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if more := failed - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d tags more", more))
	}
	return errors.Join(errs...)
}

// maxCloseErrors is how many tags Close names whose IDs did not go back.
const maxCloseErrors = 10

// recheck is how soon a store whose tags could not be listed is checked again.
const recheck = 5 * time.Second

// watch closes ready once the store answers, then keeps the tags in use in step with it.
func (s *Set) watch(ctx context.Context) {
	defer close(s.done)
	pause := firstBackoff
	for s.checkStore(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, maxBackoff)
		}
	}
	close(s.ready)
	for {
		wake := s.wake
		pause := s.opts.CheckInterval
		switch err := s.latestErr(); {
		case err == nil:
			pause = max(pause, min(checkFactor*s.lastTook(), maxCheckPause))
		case isUnfit(err):
			wake, pause = nil, min(maxBackoff, pause)
		default: // a check may take long where there are many tags
			pause = min(recheck, pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(pause):
		}
		_ = s.checkStore(ctx) // it has logged why; the next one may succeed
	}
}

// An idle server spends at most 1/checkFactor of the time on checks, however many tags it has, as
// far as maxCheckPause allows.
const (
	checkFactor   = 200
	maxCheckPause = 5 * time.Minute
)

// checkStore checks the tags in use, and logs when the outcome differs from the last one.
func (s *Set) checkStore(ctx context.Context) error {
	err := s.check(ctx)
	if ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	before := s.lastCheck
	s.lastCheck = err
	s.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		s.opts.Logger.Warn("the store is unavailable", "err", err)
	case err == nil && before != nil:
		s.opts.Logger.Info("the store is available again")
	}
	return err
}

// check has the store's tags listed, unless they are those of the latest listing, which all
// buffers with IDs must be in.
func (s *Set) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.CheckInterval)
	defer cancel()
	wanted, end := s.beginRelist()
	defer end()
	loaded := s.each.loaded.Swap(false)
	digest := s.askDigest(ctx) // before the listing: what changes meanwhile makes another one
	if digest != "" && digest == s.digest && s.each.failing.none() && (!loaded || s.listsLoaded()) &&
		s.decides(wanted) {
		return nil
	}
	return s.list(ctx, digest, wanted)
}

// decides reports whether the latest listing tells of each wanted tag: it has the tag by name, or
// the store lacks the tag.
func (s *Set) decides(wanted map[string]struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tag := range wanted {
		if _, ok := s.listed[tag]; !ok && (!s.whole || s.probablyListed(tag)) {
			return false
		}
	}
	return true
}

// listsLoaded reports whether the latest listing had the tags of all buffers with IDs.
func (s *Set) listsLoaded() bool {
	for b := range s.tags.all() {
		if b.loaded() && !s.lists(b.tag) {
			return false
		}
	}
	return true
}

// askDigest returns what tells that the tags are the same as before, empty if nothing does. The
// first listing has nothing to compare with, and the start of a server waits for it.
func (s *Set) askDigest(ctx context.Context) string {
	d, ok := s.store.(Digester)
	if !ok || s.listed == nil {
		return ""
	}
	digest, err := d.Digest(ctx)
	if err != nil {
		return "" // the listing tells why
	}
	return digest
}

// list lists the store's tags. It ends the buffers of missing tags, and of idle ones without a
// grant. A buffer counts as missing only if it had a grant before the listing began. Wanted tags
// are kept however many others the store has.
func (s *Set) list(ctx context.Context, digest string, wanted map[string]struct{}) error {
	missing := s.expect()
	s.digest = ""
	listed, written := make(map[string]struct{}, len(s.listed)), make(forms)
	hashed, whole := make([]uint64, 0, len(s.hashed)), true
	for tag, err := range s.steps(ctx) {
		switch {
		case err != nil && len(listed) > 0 && missing == 0:
			return nil // the tags in use are there
		case err != nil:
			return &leaf.StoreError{Err: err}
		}
		if b := s.tags.get(tag.Name); b != nil {
			tag.Name = b.tag // kept once
			anew := tag.Options.Stockless() != nil && b.strict.Load() == nil
			if b.missing && !anew {
				b.missing = false
				missing--
				b.setStep(tag.Step)
			}
		}
		if _, ok := wanted[tag.Name]; ok || len(listed) < maxListed {
			listed[tag.Name] = struct{}{}
			written.take(tag, s.forms)
			continue
		}
		if s.listed != nil && len(hashed) < maxHashed { // a start does not wait for so many
			hashed = append(hashed, s.hash(tag.Name))
			continue
		}
		if whole = false; missing == 0 && len(wanted) == 0 {
			break
		}
	}
	slices.Sort(hashed)
	s.mu.Lock()
	s.listed, s.hashed, s.whole, s.forms, s.digest = listed, hashed, whole, written, digest
	s.mu.Unlock()
	if missing > 0 {
		s.dropMissing()
	}
	return nil
}

// steps lists the store's tags with their steps.
func (s *Set) steps(ctx context.Context) iter.Seq2[Tag, error] {
	if l, ok := s.store.(Lister); ok {
		return l.Steps(ctx)
	}
	return s.store.Tags(ctx)
}

// expect marks the buffers that a listing must contain, and returns their number.
func (s *Set) expect() (n int) {
	for b := range s.tags.all() {
		if b.missing = b.loaded(); b.missing {
			n++
		} else {
			b.expire(time.Now())
		}
	}
	return n
}

// dropMissing ends the buffers that a listing did not have.
func (s *Set) dropMissing() {
	for b := range s.tags.all() {
		if b.missing {
			s.opts.Logger.Info("tag is gone from the store", "tag", b.tag)
			s.tags.remove(b) // before its end: callers of a tag created anew get another one
			b.abandon(fmt.Errorf("tag %q: %w", b.tag, leaf.ErrUnknownTag))
		}
	}
}
