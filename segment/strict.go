package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/mask"
)

// Values of [OptionOrder].
const (
	OrderStrict      = "strict"       // a store that can lose writes refuses
	OrderStrictLossy = "strict-lossy" // the order holds unless the store loses writes
)

// ErrStrict refuses a call that would make a stock of a tag with strict order.
var ErrStrict = errors.New("the tag has strict order: its IDs come one call at a time")

// A StrictStore is a [Store] that can have tags with strict order. Its Advance refuses them with
// [ErrStrict], so a program without knowledge of strict order cannot issue their IDs from a stock.
type StrictStore interface {
	// AdvanceStrict is Advance for a tag with strict order, with n of at least 1 and a grant of
	// exactly n IDs. It wraps [leaf.ErrUnknownTag] for a tag without. The IDs belong only to the
	// callers who waited for them before the call.
	//
	// It also advances the counter of a period, which it creates at the tag's MaxID; a counter
	// never grants less than that. Without a name it is the present period, by the clock of the
	// process that calls the database; see [TagOptions.PeriodOf].
	AdvanceStrict(ctx context.Context, tag, period string, n int64) (Grant, error)
}

// Strict reports whether the tag has strict order.
func (o TagOptions) Strict() bool { return o[OptionOrder] != "" }

// CheckStrict reports why a store with these options for a tag must not grant its IDs by
// AdvanceStrict, or with masked by AdvanceMasked. Lossy: the store may lose acknowledged writes.
func (o TagOptions) CheckStrict(lossy, masked bool) error {
	switch {
	case o.Masked() && !masked:
		return o.Stockless()
	case o.Masked():
		return nil // it promises no order
	case masked:
		return fmt.Errorf("%w: it has no mask", leaf.ErrUnknownTag)
	case o.Periodic():
		return nil // it promises no order
	case !o.Strict():
		return fmt.Errorf("%w: it has no strict order", leaf.ErrUnknownTag)
	case o[OptionOrder] == OrderStrict && lossy:
		return fmt.Errorf("%w: the store can lose acknowledged writes, and with them the strict order: create the tag with the order %q to accept that",
			leaf.ErrUnsupported, OrderStrictLossy)
	}
	return nil
}

func checkOrder(value string) error {
	if value != OrderStrict && value != OrderStrictLossy {
		return fmt.Errorf("%w: %.40q is not %s or %s", leaf.ErrInvalid, value, OrderStrict, OrderStrictLossy)
	}
	return nil
}

// A strictQueue issues the IDs of a tag with strict order. It has no stock: one call to the store
// has exactly the IDs of the callers who wait when it leaves, and later callers wait for the next
// one. So an ID is above all IDs that any caller had before the request for it.
type strictQueue struct {
	buffer  *Buffer
	refusal error // of calls that would make a stock: [ErrStrict], [ErrPeriodic] or [ErrMasked]

	mask  *mask.Mask // of a tag with one; nil: the store is a server that hides the numbers
	end   int64      // of the domain of mask
	noKey error      // why the numbers cannot be hidden; the store is not called then

	mu      sync.Mutex
	waiting []*strictCall
	served  chan struct{} // nil, or a goroutine takes from waiting, and closes this at its end
}

// A strictCall is a caller that waits for n IDs.
type strictCall struct {
	ctx    context.Context // ended: the caller has left
	period string          // as named; empty: the present one
	n      int64
	fewer  bool          // n is the most it wants
	done   chan struct{} // closed once what follows is set
	got    Grant
	err    error
}

// maxStrict bounds the IDs of several callers in one call to the store.
const maxStrict = 10_000

// take waits for n IDs of a period that follow one another. A caller that does not wait gets an error
// with [ErrStrict].
func (q *strictQueue) take(ctx context.Context, period string, n int64) (Grant, error) {
	return q.await(ctx, &strictCall{period: period, n: n})
}

// await has a call wait for its IDs.
func (q *strictQueue) await(ctx context.Context, c *strictCall) (Grant, error) {
	if q.noKey != nil {
		return Grant{}, fmt.Errorf("tag %q: %w", q.buffer.tag, q.noKey)
	}
	if q.masks() && c.period != "" {
		return Grant{}, fmt.Errorf("tag %q: %w: the tag has no periods", q.buffer.tag, leaf.ErrInvalid)
	}
	if q.masks() && c.n > maxStrict {
		return Grant{}, fmt.Errorf("tag %q: %w: at most %d hidden numbers at once", q.buffer.tag, leaf.ErrInvalid, maxStrict)
	}
	if ctx.Err() != nil {
		return Grant{}, fmt.Errorf("take IDs of %q: %w: %w", q.buffer.tag, ErrStrict, context.Cause(ctx))
	}
	if err := q.buffer.ended(); err != nil {
		return Grant{}, err // who joins again and again would keep the queue's goroutine, and so Close
	}
	var leave context.CancelFunc
	c.ctx, leave = context.WithCancel(ctx)
	defer leave()
	c.done = make(chan struct{})
	q.mu.Lock()
	q.waiting = append(q.waiting, c)
	if q.served == nil {
		q.served = make(chan struct{})
		go q.serve()
	}
	q.mu.Unlock()
	for left := q.buffer.opts.Wait; left > 0; left = q.patience() {
		select {
		case <-c.done:
			if c.err != nil {
				return Grant{}, c.err
			}
			return q.hide(c.got)
		case <-ctx.Done():
			return Grant{}, fmt.Errorf("wait for IDs of %q: %w", q.buffer.tag, context.Cause(ctx))
		case <-time.After(left):
		}
	}
	return Grant{}, q.buffer.exhausted(nil)
}

// patience returns how long a caller who has waited for [Options.Wait] waits on, because the store
// has delivered to others meanwhile.
func (q *strictQueue) patience() time.Duration {
	b := q.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opts.Wait - time.Since(b.account.lastAt)
}

// next takes the callers of the next call to the store, and leaves out vanished ones. Without
// any the goroutine ends.
func (q *strictQueue) next() (calls []*strictCall, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var later []*strictCall
	for _, c := range q.waiting {
		switch {
		case c.ctx.Err() != nil:
		case n > 0 && (n+c.n > maxStrict || c.period != calls[0].period):
			later = append(later, c)
		default:
			calls, n = append(calls, c), n+c.n
		}
	}
	q.waiting = later
	if len(calls) == 0 {
		close(q.served)
		q.served = nil
	}
	return calls, n
}

func (q *strictQueue) serve() {
	for calls, n := q.next(); len(calls) > 0; calls, n = q.next() {
		grant, err := q.fetch(calls[0].ctx, calls[0].period, n)
		for _, c := range calls {
			if c.err = err; err == nil {
				c.got, c.err = q.share(&grant, c)
			}
			close(c.done)
		}
	}
}

// share takes the IDs of a call off a grant. At the end of a mask it has too few for all: callers
// who want no more than the rest have them.
func (q *strictQueue) share(all *Grant, c *strictCall) (Grant, error) {
	n := c.n
	if c.fewer {
		n = min(n, all.Len())
	}
	if n == 0 || n > all.Len() {
		return Grant{}, q.usedUp()
	}
	return split(all, n), nil
}

// split takes n IDs off a grant.
func split(all *Grant, n int64) Grant {
	g := *all
	if all.Masked != nil {
		g.Masked, all.Masked = all.Masked[:n:n], all.Masked[n:]
		return g
	}
	g.Range.End = all.Range.Start + n
	all.Range.Start = g.Range.End
	return g
}

// fetch gets exactly n IDs, for a first caller with that context. A failed call is not repeated:
// the callers learn of it at once.
func (q *strictQueue) fetch(caller context.Context, period string, n int64) (Grant, error) {
	b := q.buffer
	ctx := context.Background() // other callers may wait longer than the first
	if b.opts.RefillContext != nil {
		ctx = b.opts.RefillContext(caller)
	}
	if err := b.ended(); err != nil {
		return Grant{}, err
	}
	grant, err := b.fetch(ctx, period, n)
	if err == nil && grant.Masked == nil && grant.Len() != n {
		err = &leaf.StoreError{Err: fmt.Errorf("tag %q: the store granted %v when asked for %d", b.tag, grant.Range, n)}
	}
	if err != nil && q.masks() && !q.hides() && errors.Is(err, leaf.ErrOverflow) {
		return Grant{}, q.usedUp()
	}
	if err != nil && q.masks() {
		err = &leaf.StoreError{Err: err} // whose words callers do not get: they may have the plain numbers
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &b.account
	switch {
	case err == nil:
		a.grants++
		a.step, a.last, a.lastAt = grant.Step, n, time.Now()
		a.retired += n
		return q.within(grant), nil
	case errors.Is(err, leaf.ErrUnknownTag): // deleted, and perhaps created again with another order
		b.finish(fmt.Errorf("tag %q: %w", b.tag, leaf.ErrUnknownTag))
		if b.opts.set != nil {
			b.opts.set.forget(b)
		}
		err = b.end
	case errors.Is(err, leaf.ErrInvalid): // the named period
		if bad, ok := errors.AsType[badPeriod](err); ok {
			err = bad // the store may see it
		}
		err = fmt.Errorf("tag %q: %w", b.tag, err)
	case isUnfit(err), errors.Is(err, ErrMaskKey):
		a.failures++
		err = fmt.Errorf("tag %q: %w", b.tag, err)
	default:
		a.failures++
		err = b.exhausted(err)
	}
	return grant, err
}

// takeRun is take for IDs that follow one another.
func (q *strictQueue) takeRun(ctx context.Context, n int64) (leaf.Range, error) {
	if q.masks() && n > 1 {
		return leaf.Range{}, fmt.Errorf("tag %q: %w: hidden numbers follow no order", q.buffer.tag, leaf.ErrNotContiguous)
	}
	g, err := q.take(ctx, "", n)
	if err != nil {
		return leaf.Range{}, err
	}
	return g.AppendTo(nil)[0], nil
}

// becomeStrict has the buffer issue by a queue from now on, because the store refused a stock; b.mu
// is held. A stock that it has is that of a deleted tag with the same name.
func (b *Buffer) becomeStrict(err error) {
	b.account.grants++ // the tag exists
	b.opts.loaded.Store(true)
	b.notFailing()
	b.health = storeHealth{}
	q := &strictQueue{buffer: b, refusal: ErrStrict}
	if errors.Is(err, ErrPeriodic) {
		q.refusal = ErrPeriodic
	}
	if errors.Is(err, ErrMasked) {
		q.refusal = ErrMasked
	}
	if masked, _ := errors.AsType[maskedError](err); masked.mask != "" {
		q.mask, q.noKey = b.opts.MaskKeys.open(b.tag, masked.mask)
		q.end = TagOptions{OptionMask: masked.mask}.Used(0)
	}
	b.strict.Store(q) // first: without a stock, callers wait for it
	b.dropStock(math.MaxInt64)
	b.wakeAll()
}

// Stockless reports whether a tag has no stock, so that its IDs come from AdvanceStrict.
func (s serverSet) Stockless(ctx context.Context, tag string) (bool, error) {
	q, err := s.queue(ctx, tag)
	return q != nil, err
}

// queue returns the queue of a tag without a stock, nil for any other one.
func (s serverSet) queue(ctx context.Context, tag string) (*strictQueue, error) {
	b, err := s.buffer(ctx, tag)
	if err == nil && b.current.Load() == noIDs && b.strict.Load() == nil { // perhaps not looked up yet
		err = b.awaitLoaded(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b.strict.Load(), nil
}

// AdvanceStrict passes a call of a process with a [Set] of its own on to the store.
//
// The period is nil where the caller knows nothing of periods, and masked false where it knows nothing
// of masks. At the end of a mask the grant has the remaining IDs, and wraps [leaf.ErrOverflow]
// without any.
func (s serverSet) AdvanceStrict(ctx context.Context, tag string, period *string, masked bool, n int64) (Grant, error) {
	q, err := s.queue(ctx, tag)
	if err != nil {
		return Grant{}, err
	}
	if q != nil {
		if period == nil && q.refusal == ErrPeriodic {
			return Grant{}, fmt.Errorf("tag %q: %w", tag, ErrPeriodic)
		}
		if q.masks() && !masked {
			return Grant{}, fmt.Errorf("tag %q: %w", tag, ErrMasked)
		}
		g, err := q.await(ctx, &strictCall{period: *cmp.Or(period, new(string)), n: n, fewer: q.masks()})
		return Grant{Range: g.Range, Masked: g.Masked, Step: g.Step, Store: g.Store, Period: g.Period}, err // nothing goes back
	}
	return Grant{}, fmt.Errorf("tag %q: %w: it has no strict order", tag, leaf.ErrUnknownTag)
}
