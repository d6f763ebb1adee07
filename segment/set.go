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
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
)

// unknownFor is how long a tag that the store does not know is refused without
// asking again.
const unknownFor = time.Second

// A Set hands out the IDs of every tag of a store: a [Buffer] each, made when the
// tag is first asked for. Its methods are safe for concurrent use.
type Set struct {
	store Store
	opts  SetOptions
	limit chan struct{}
	tags  sync.Map // string → *Buffer

	closed atomic.Bool
	ready  chan struct{}
	cancel context.CancelFunc
	done   chan struct{} // closed when watch has returned
}

// SetOptions configures a [Set]. The zero value of a field means its default.
type SetOptions struct {
	Options // of each buffer

	// MaxCalls bounds the calls to the store in flight over all tags; default 64.
	MaxCalls int

	// CheckInterval is how often the tags in use are compared with the store, to
	// notice removed ones and changed steps; default 30 s.
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
	o.MaxCalls = cmp.Or(o.MaxCalls, DefaultMaxCalls)
	o.CheckInterval = cmp.Or(o.CheckInterval, DefaultCheckInterval)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{
		store:  store,
		opts:   o,
		limit:  make(chan struct{}, o.MaxCalls),
		ready:  make(chan struct{}),
		cancel: cancel,
		done:   make(chan struct{}),
	}
	go s.watch(ctx)
	return s
}

// Next returns the next ID of tag; see [Buffer.Next]. A name that cannot be a tag
// is an error wrapping [leaf.ErrInvalid].
func (s *Set) Next(ctx context.Context, tag string) (int64, error) {
	b, err := s.buffer(tag)
	if err != nil {
		return 0, err
	}
	return b.Next(ctx)
}

// Take appends n IDs of tag to dst; see [Buffer.Take].
func (s *Set) Take(ctx context.Context, tag string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	b, err := s.buffer(tag)
	if err != nil {
		return dst, err
	}
	return b.Take(ctx, dst, n)
}

func (s *Set) buffer(tag string) (*Buffer, error) {
	if b, ok := s.tags.Load(tag); ok {
		return b.(*Buffer), nil
	}
	if err := CheckTagName(tag); err != nil {
		return nil, err
	}
	fresh := NewBuffer(s.store, tag, &s.opts.Options)
	fresh.limit = s.limit
	fresh.onUnknown = func() {
		time.AfterFunc(unknownFor, func() { s.tags.CompareAndDelete(tag, fresh) })
	}
	b, loaded := s.tags.LoadOrStore(tag, fresh)
	if !loaded && s.closed.Load() {
		s.tags.CompareAndDelete(tag, fresh)
		return nil, fmt.Errorf("tag %q: %w", tag, leaf.ErrClosed)
	}
	return b.(*Buffer), nil
}

// buffers iterates over the buffers of the tags in use.
func (s *Set) buffers() iter.Seq[*Buffer] {
	return func(yield func(*Buffer) bool) {
		s.tags.Range(func(_, b any) bool { return yield(b.(*Buffer)) })
	}
}

// Forget drops what is in memory of tag and what is remembered of its counter. It
// belongs after an administrator deleted the tag or lowered its counter on
// purpose, which would otherwise look like a store that lost writes.
func (s *Set) Forget(tag string) error {
	if b, ok := s.tags.Load(tag); ok {
		s.drop(tag, b.(*Buffer))
	}
	if s.opts.Memory == nil {
		return nil
	}
	return s.opts.Memory.Forget(tag)
}

// Ready is closed once the store has answered for the first time.
func (s *Set) Ready() <-chan struct{} { return s.ready }

// Stats returns a snapshot of every tag in use, sorted by name.
func (s *Set) Stats() []Stats {
	var all []Stats
	for b := range s.buffers() {
		all = append(all, b.Stats())
	}
	slices.SortFunc(all, func(a, b Stats) int { return strings.Compare(a.Tag, b.Tag) })
	return all
}

// Close closes all buffers, giving back what the store takes back, as far as ctx
// allows; see [Buffer.Close].
func (s *Set) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	<-s.done
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	places := make(chan struct{}, s.opts.MaxCalls)
	for b := range s.buffers() {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := b.Close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// watch tells when the store first answers, then keeps the tags in use in step
// with it.
func (s *Set) watch(ctx context.Context) {
	defer close(s.done)
	pause := firstBackoff
	for s.check(ctx) != nil {
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, maxBackoff)
	}
	close(s.ready)
	for sleep(ctx, s.opts.CheckInterval) {
		if err := s.check(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.Warn("compare the tags in use with the store", "err", err)
		}
	}
}

// check lists the store's tags and ends the buffers of those that are gone. Only
// buffers that had been served before the listing began can be missed in it.
func (s *Set) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.CheckInterval)
	defer cancel()
	missing := make(map[string]*Buffer)
	for b := range s.buffers() {
		if b.loaded() {
			missing[b.tag] = b
		}
	}
	for tag, err := range s.store.Tags(ctx) {
		if err != nil {
			return err
		}
		if b, ok := missing[tag.Name]; ok {
			b.setStep(tag.Step)
			delete(missing, tag.Name)
		}
		if len(missing) == 0 {
			break
		}
	}
	for tag, b := range missing {
		s.opts.Logger.Info("tag is gone from the store", "tag", tag)
		s.drop(tag, b)
	}
	return nil
}

// drop ends a buffer whose tag is gone.
func (s *Set) drop(tag string, b *Buffer) {
	b.abandon(fmt.Errorf("tag %q: %w", tag, leaf.ErrUnknownTag))
	s.tags.CompareAndDelete(tag, b)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
