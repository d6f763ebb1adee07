package segment

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
)

// A Buffer hands out the IDs of one tag from memory and fetches the next range
// from its store before the last one is missed. It implements [leaf.Generator].
//
// A Buffer starts a goroutine when it has to call its store; [Buffer.Close] ends it.
type Buffer struct {
	tag   string
	opts  *shared
	guard guard // owned by the refill in flight, then by Close

	current atomic.Pointer[span]
	strict  atomic.Pointer[strictQueue] // nil: the tag has a stock

	// Cursors issue no ID of their blocks below it: floor, or the largest int64 once end is set.
	cursorFloor atomic.Int64

	// These belong to mu. They are here to save memory: there may be very many buffers.
	closing bool // no refill may start any more
	clipped bool // the loss budget is less than the outage budget asks for
	follows bool // the last grant begins where the one before ended

	recalled bool // the guard's: it has read the memory
	missing  bool // the set's check's: the listing under way has not had the tag yet

	mu      sync.Mutex
	queue   []*span       // what follows current
	short   int64         // how many IDs the waiting callers need
	runs    []*runWait    // waiting callers whose IDs must follow one another
	wake    chan struct{} // closes when waiting callers should check again; nil without callers
	refill  *refill       // in flight; nil: no call is
	asking  int64         // how many IDs the refill in flight asks for
	end     error         // why no ID will ever be issued again; nil while there may be
	health  storeHealth
	demand  demand
	use     *recentUse // nil: no more than a step was issued yet
	account account
	floor   int64 // IDs below it are not issued: see DropBelow
	loan    *loan // the latest; nil: no loan, or it came back
}

// account counts the IDs that a buffer received and issued.
type account struct {
	retired  int64     // IDs issued from earlier spans
	step     int64     // the tag's step as last heard
	last     int64     // size of the last grant
	asked    int64     // the requested IDs of the last grant
	granted  int64     // how many it had
	end      int64     // where it ends
	lastAt   time.Time // when it came; when the buffer was made
	grants   int64
	failures int64

	calls     int64         // of the store's Advance
	callTime  time.Duration // that they took
	waits     int64         // of callers
	exhausted int64         // calls that failed for lack of IDs
	lost      int64         // granted IDs that the buffer will never issue
	returned  int64         // IDs given back
}

// NewBuffer returns a buffer over tag's counter in store. It calls the store at the first request
// for an ID. Once the store does not know the tag, every call fails with [leaf.ErrUnknownTag], also
// after the tag was created: make another buffer then. A [Set] does that by itself.
func NewBuffer(store Store, tag string, opts *Options) *Buffer {
	return newBuffer(tag, newShared(store, nil, opts.withDefaults()))
}

// shared is the common part of a set's buffers.
type shared struct {
	Options
	store   Store
	made    time.Time
	set     *Set        // nil: a buffer of its own
	failing failing     // live buffers with an error in their health
	loaded  atomic.Bool // a buffer was first granted IDs since this was reset
	id      storeID
}

func newShared(store Store, set *Set, opts Options) *shared {
	s := &shared{Options: opts, store: store, set: set, made: time.Now()}
	s.recallStore()
	return s
}

func newBuffer(tag string, opts *shared) *Buffer {
	now := time.Now()
	b := &Buffer{tag: tag, opts: opts, account: account{lastAt: now}, demand: demand{at: now.Sub(opts.made)}}
	b.guard.buffer = b
	b.current.Store(noIDs)
	return b
}

// Next returns the next ID. When the stock is used up it waits for the store to deliver, bounded by
// ctx and by [Options.Wait]. It fails with an error that wraps [leaf.ErrUnknownTag],
// [leaf.ErrExhausted], [leaf.ErrOverflow], [leaf.ErrClosed] or ctx's own.
func (b *Buffer) Next(ctx context.Context) (int64, error) {
	s := b.current.Load()
	quiet, before := s.quiet.Load(), s.start-1 // read first: a read after the add waits for it
	used := s.used.Add(1)
	if used <= quiet {
		return before + used, nil
	}
	return b.next(ctx, s, used)
}

// next is Next where the caller, who reserved up to used of s, has more to do.
func (b *Buffer) next(ctx context.Context, s *span, used int64) (int64, error) {
	if used <= s.size {
		if s.due(used) {
			b.topUp(ctx)
		}
		return s.start + used - 1, nil
	}
	r, err := b.takeOne(ctx, s)
	return r.Start, err
}

// takeOne returns one ID, after a wait if necessary; s is empty.
func (b *Buffer) takeOne(ctx context.Context, s *span) (leaf.Range, error) {
	var one [1]leaf.Range
	ranges, err := b.take(ctx, one[:0], s, leaf.Range{}, 1)
	if err != nil {
		return leaf.Range{}, err
	}
	return ranges[0], nil
}

// Take appends n IDs to dst as few ranges; see [leaf.Generator]. n is 1 … [Options.MaxStock], else
// the error wraps [leaf.ErrInvalid]. The other errors are those of [Buffer.Next].
func (b *Buffer) Take(ctx context.Context, dst []leaf.Range, n int) ([]leaf.Range, error) {
	if err := b.checkCount(n); err != nil {
		return dst, err
	}
	s := b.current.Load()
	quiet := s.quiet.Load()
	if int64(n) > quiet-s.used.Load() {
		return b.take(ctx, dst, s, leaf.Range{}, int64(n))
	}
	r := s.take(int64(n))
	if r.Len() == int64(n) && r.End-s.start <= quiet {
		return append(dst, r), nil
	}
	return b.take(ctx, dst, s, r, int64(n)) // other callers were faster
}

func (b *Buffer) checkCount(n int) error {
	if n < 1 || int64(n) > b.opts.MaxStock {
		return b.badCount(n)
	}
	return nil
}

func (b *Buffer) badCount(n int) error {
	return fmt.Errorf("take from %q: %w: n = %d is not in 1 … %d", b.tag, leaf.ErrInvalid, n, b.opts.MaxStock)
}

// take is Take where the caller has reserved r, which may be empty, of s.
func (b *Buffer) take(ctx context.Context, dst []leaf.Range, s *span, r leaf.Range, n int64) ([]leaf.Range, error) {
	out, all := dst, n
	var timer *time.Timer
	delivered := false // the store is alive: it has delivered while the call waited
	for {
		if q := b.strict.Load(); q != nil {
			g, err := q.take(ctx, "", all) // IDs in out are those of a deleted tag
			if err != nil {
				return dst, err
			}
			return g.AppendTo(dst), nil
		}
		if !r.Empty() {
			out = appendRange(out, len(dst), r)
			n -= r.Len()
			if s.due(r.End - s.start) {
				b.topUp(ctx)
			}
		}
		if n == 0 {
			return out, nil
		}
		s = b.current.Load()
		if r = b.reserve(ctx, s, n, delivered); !r.Empty() {
			continue
		}
		if timer == nil {
			timer = time.NewTimer(b.opts.Wait)
			defer timer.Stop()
		}
		fed, err := b.await(ctx, s, n, delivered, timer)
		if err != nil {
			return dst, err
		}
		if fed {
			delivered = true
			timer.Reset(b.opts.Wait) // the store delivers, even if to other callers
		}
	}
}

// reserve takes up to n IDs off s, or no ID if the call should wait.
func (b *Buffer) reserve(ctx context.Context, s *span, n int64, delivered bool) leaf.Range {
	if n > s.remaining() {
		b.mu.Lock()
		affordable := b.affords(ctx, n, delivered)
		b.mu.Unlock()
		if !affordable {
			return leaf.Range{}
		}
	}
	return s.reserve(n)
}

// affords reports whether a call for n IDs should take the available ones although it may have to
// wait for the rest; the caller holds b.mu. A batch that cannot be complete must not use up IDs
// that single calls could get. So either the stock has the whole batch, or the store has just
// delivered, or it will deliver only after callers have used some of the stock. A call whose
// context has ended cannot wait for the rest: it gets the whole batch from the stock or nothing.
func (b *Buffer) affords(ctx context.Context, n int64, delivered bool) bool {
	stock := b.stock()
	if stock >= n || ctx.Err() != nil {
		return stock >= n
	}
	return delivered || b.opts.Policy == Adaptive && stock > b.issued()+b.account.step
}

// appendRange joins r to the last of ranges where the two touch; the first keep
// ranges are left alone.
func appendRange(ranges []leaf.Range, keep int, r leaf.Range) []leaf.Range {
	if last := len(ranges) - 1; last >= keep && ranges[last].End == r.Start {
		ranges[last].End = r.End
		return ranges
	}
	return append(ranges, r)
}

// await is for a caller that got no IDs of the current span s and still needs n. It returns nil
// when the caller should check again, or the reason to give up. fed: the store has delivered
// meanwhile.
func (b *Buffer) await(ctx context.Context, s *span, n int64, delivered bool, timer *time.Timer) (fed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.strict.Load() != nil || b.current.Load() != s || s.remaining() == 0 && b.pop() || s.remaining() > 0 && b.affords(ctx, n, delivered) {
		return false, nil
	}
	if b.end != nil {
		return false, b.end
	}
	return b.waitForStore(ctx, &n, timer)
}

// waitForStore returns when the store has been called for a caller that needs IDs, or
// with the reason why that caller should give up. b.mu is held, but not during the wait.
func (b *Buffer) waitForStore(ctx context.Context, need *int64, timer *time.Timer) (fed bool, err error) {
	trying := b.refill != nil
	b.startRefill(ctx)
	if err := b.health.refusal(time.Now(), b.opts.Wait, trying); err != nil {
		b.account.exhausted++
		return false, b.exhausted(err)
	}
	if ctx.Err() == nil {
		b.account.waits++
	}
	if b.wake == nil {
		b.wake = make(chan struct{})
	}
	wake := b.wake
	b.short += *need
	granted := b.account.grants
	b.mu.Unlock()

	select {
	case <-wake:
	case <-timer.C:
		err = errWaited
	case <-ctx.Done():
		err = context.Cause(ctx)
	}

	b.mu.Lock()
	b.short -= *need
	switch {
	case err == errWaited:
		b.account.exhausted++
		return false, b.exhausted(b.health.err)
	case err != nil:
		return false, fmt.Errorf("wait for IDs of %q: %w", b.tag, err)
	}
	return b.account.grants > granted, nil
}

// pop makes the next span of the queue current; b.mu is held and the current span is drained.
func (b *Buffer) pop() bool {
	if len(b.queue) == 0 {
		return false
	}
	s := b.current.Load()
	b.account.retired += s.size
	b.current.Store(b.queue[0])
	if b.queue = b.queue[1:]; len(b.queue) == 0 {
		b.queue = nil // and its memory
	}
	return true
}

// wakeAll lets every waiting caller look again; b.mu is held.
func (b *Buffer) wakeAll() {
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// stock is how many IDs are left in memory; b.mu is held.
func (b *Buffer) stock() int64 {
	n := b.current.Load().remaining()
	for _, s := range b.queue {
		n += s.remaining()
	}
	return n
}

// issued is how many IDs have been issued; b.mu is held.
func (b *Buffer) issued() int64 {
	if b.end != nil { // the current span is sealed and retired
		return b.account.retired
	}
	return b.account.retired + b.current.Load().issued()
}
