package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// topUp tops up the stock when due, for a caller with that context.
func (b *Buffer) topUp(caller context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, due := b.size(time.Now()); due {
		b.startRefill(caller)
	}
}

// A refill calls the store until no caller waits for it.
type refill struct {
	ctx     context.Context // of its calls
	cancel  context.CancelFunc
	closing chan struct{} // closed when it should not wait to call again
	done    chan struct{} // closed when it has ended
}

// startRefill starts a refill, for a caller with that context, unless one is in flight; b.mu
// is held.
func (b *Buffer) startRefill(caller context.Context) {
	if b.refill != nil || b.over() || b.strict.Load() != nil {
		return
	}
	b.health.resume(time.Now(), b.opts.Wait)
	ctx := context.Background() // a refill outlives its caller
	if b.opts.RefillContext != nil {
		ctx = b.opts.RefillContext(caller)
	}
	ctx, cancel := context.WithCancel(ctx)
	b.refill = &refill{ctx: ctx, cancel: cancel, closing: make(chan struct{}), done: make(chan struct{})}
	go b.run(b.refill)
}

// over reports whether the store must not be called any more; b.mu is held.
func (b *Buffer) over() bool { return b.closing || b.end != nil }

// ended returns why the buffer issues no more IDs; nil: it does.
func (b *Buffer) ended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil && b.closing {
		return fmt.Errorf("tag %q: %w", b.tag, leaf.ErrClosed)
	}
	return b.end
}

// run does r. One runs at a time.
func (b *Buffer) run(r *refill) {
	for {
		n, due := b.prepare(r)
		if !due {
			return
		}
		grant, err := b.fetch(r.ctx, "", n)
		if !b.apply(grant, err) {
			return
		}
	}
}

// prepare waits out the back-off and says how much to ask for. Once it has said
// that nothing is due the refill is no longer in flight.
func (b *Buffer) prepare(r *refill) (n int64, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if pause := time.Until(b.health.retryAt); pause > 0 {
		b.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-r.closing:
		case <-r.ctx.Done():
		}
		b.mu.Lock()
	}
	if !b.over() {
		n, due = b.size(time.Now())
		run := b.longestRun()
		n, due = max(n, run), due || run > 0
		if errors.Is(b.health.err, ErrForeignStore) {
			n = 1 // the grant will be discarded
		}
		b.asking = n
	}
	if !due {
		b.refillDone()
	}
	return n, due
}

// refillDone marks the refill as ended; b.mu is held.
func (b *Buffer) refillDone() {
	b.refill.cancel()
	close(b.refill.done)
	b.refill = nil
}

// size says how many IDs the next allocation is to have, 0 for the tag's own step,
// and whether one is due; b.mu is held.
func (b *Buffer) size(now time.Time) (n int64, due bool) {
	a := &b.account
	stock := b.stock()
	b.demand.record(now.Sub(b.opts.made), b.issued())
	if b.opts.Policy == Leaf {
		due = len(b.queue) == 0 || b.short > stock
		if a.grants < 2 {
			return 0, due
		}
		return LeafStep(a.last, a.step, now.Sub(a.lastAt)), due
	}
	if a.grants == 0 {
		return 0, true
	}
	n = adaptiveSize(stock, b.short, a.step, b.issued(), b.recent(now), b.opts.MaxStock)
	if n > 0 && b.health.err != nil {
		// The call may succeed and its reply be lost, again and again: that must cost little.
		n = max(1, min(n, max(a.step, b.short-stock)))
	}
	return n, n > 0
}

// recent returns how many IDs the last outage budget needed; b.mu is held.
func (b *Buffer) recent(now time.Time) int64 {
	issued := b.issued()
	if b.use == nil {
		if issued <= b.account.step {
			return issued // most tags of many are used this little, and need no samples
		}
		b.use = new(recentUse)
	}
	recent := b.use.record(now.Sub(b.opts.made), b.opts.OutageBudget, issued)
	b.compareBudgets(recent)
	return recent
}

// compareBudgets logs, once each time it happens, that the loss budget keeps the stock below the
// outage budget; the caller holds b.mu.
func (b *Buffer) compareBudgets(recent int64) {
	most := b.opts.MaxStock
	if clipped := recent > most || b.clipped && recent > most/10*9; clipped != b.clipped {
		b.clipped = clipped
		if clipped {
			b.opts.Logger.Warn("max_stock keeps the stock from lasting for outage_budget", "tag", b.tag, "rate", int64(b.demand.rate),
				"lasts", lasts(most, b.demand.rate).Round(time.Second), "outage_budget", b.opts.OutageBudget)
		}
	}
}

// apply applies the result of a call to the store and reports whether to call again.
func (b *Buffer) apply(grant Grant, err error) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.end != nil: // sealed meanwhile: what comes now is lost
		b.account.lost += grant.Range.Len()
	case err == nil:
		again = b.health.err != nil // so the request was small
		b.accept(grant)             // callers in need of more IDs then call again
	case errors.Is(err, leaf.ErrUnknownTag):
		b.finish(fmt.Errorf("tag %q: %w", b.tag, leaf.ErrUnknownTag))
		if b.opts.set != nil {
			b.opts.set.forget(b)
		}
	case errors.Is(err, ErrStrict):
		b.becomeStrict(err)
	default:
		b.account.failures++
		now := time.Now()
		if b.health.failed(now, err, b.short > 0) {
			b.opts.failing.add(b)
			b.logFailure(now, err)
		}
		if b.health.refusal(now, b.opts.Wait, true) != nil {
			b.wakeAll()
		}
		if isUnfit(err) && b.opts.set != nil {
			b.opts.set.checkSoon()
		}
		again = !isPermanent(err) && (b.short > 0 || b.account.grants > 0)
	}
	if !again {
		b.refillDone()
	}
	return again
}

// accept puts a grant behind the stock; the caller holds b.mu.
func (b *Buffer) accept(grant Grant) {
	now := time.Now()
	a := &b.account
	if a.grants++; a.grants == 1 {
		b.opts.loaded.Store(true)
		if b.opts.set != nil {
			b.opts.set.unknownTags.remove(b)
		}
	}
	a.step, a.asked, a.granted = grant.Step, b.asking, grant.Range.Len()
	b.follows, a.end = grant.Range.Start == a.end, grant.Range.End
	a.last, a.lastAt = grant.Range.Len(), now
	if b.health.logged {
		b.opts.Logger.Info("store answers again", "tag", b.tag, "after", now.Sub(b.health.since))
	}
	b.notFailing()
	b.health = storeHealth{}
	usable := aboveFloor(grant.Range, b.floor)
	a.lost += grant.Range.Len() - usable.Len()
	if !usable.Empty() {
		s := spanOf(usable, originOf(grant))
		s.known = b.guard.before
		b.queue = append(b.queue, s)
	}
	b.serveRuns()
	b.wakeAll()
}

// notFailing ends the counting of b as one that fails; b.mu is held.
func (b *Buffer) notFailing() {
	if b.health.err != nil {
		b.opts.failing.remove(b)
	}
}

// fetch gets a range that may be issued: one that the guard admits.
func (b *Buffer) fetch(ctx context.Context, period string, n int64) (Grant, error) {
	const maxCalls = 8 // calls; lifting a counter takes two where the store deals in any size
	b.guard.recall()
	ask := n
	for range maxCalls {
		grant, err := b.call(ctx, period, ask)
		if err != nil {
			return Grant{}, err
		}
		period = grant.Period // also if a lift ends after midnight
		if err := b.opts.checkStore(grant); err != nil {
			b.lose(grant.Range.Len())
			return Grant{}, &leaf.StoreError{Err: fmt.Errorf("tag %q: %w", b.tag, err)}
		}
		grant.Store = b.opts.keptStore(grant.Store)
		if grant.Masked != nil {
			return grant, nil // the server that hid the numbers has a guard
		}
		lift, err := b.guard.admit(grant)
		if err != nil {
			return Grant{}, &leaf.StoreError{Err: err}
		}
		if lift < 0 {
			if ask != n { // another process lifted the counter first
				most := cmp.Or(n, grant.Step)
				b.lose(max(0, grant.Range.Len()-most))
				grant.Range.Start = max(grant.Range.Start, grant.Range.End-most) // the end can be given back
			}
			return grant, nil
		}
		b.lose(grant.Range.Len())
		ask = n
		if lifter, ok := b.opts.store.(Lifter); lift > 0 && !ok {
			ask = lift
		} else if lift > 0 {
			if err := b.lift(ctx, lifter, grant.Source, grant.Range.End+lift); err != nil {
				return Grant{}, err
			}
		}
	}
	return Grant{}, fmt.Errorf("tag %q: the store keeps granting IDs that may be in use", b.tag)
}

// lift has the store move a counter that went backwards.
func (b *Buffer) lift(ctx context.Context, lifter Lifter, source string, floor int64) error {
	ctx, cancel := context.WithTimeout(ctx, b.opts.CallTimeout)
	defer cancel()
	if err := lifter.Lift(ctx, b.tag, source, floor); err != nil {
		return &leaf.StoreError{Err: err}
	}
	return nil
}

// call makes one call to the store and checks the result.
func (b *Buffer) call(ctx context.Context, period string, n int64) (Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.CallTimeout)
	defer cancel()
	if b.opts.set != nil {
		leave, err := b.opts.set.acquire(ctx, b)
		if err != nil {
			return Grant{}, err
		}
		defer leave()
	}
	start := time.Now()
	ctx, ended := b.begin(ctx, Call{Tag: b.tag, Asked: n})
	var grant Grant
	var err error
	q := b.strict.Load()
	switch {
	case q == nil:
		grant, err = b.opts.store.Advance(ctx, b.tag, n)
	case q.masks():
		grant, err = b.callMasked(ctx, n)
	default:
		grant, err = b.opts.store.(StrictStore).AdvanceStrict(ctx, b.tag, period, n) // likewise
	}
	ended(grant.Len(), err)
	b.called(time.Since(start))
	if err != nil {
		return Grant{}, &leaf.StoreError{Err: err}
	}
	if q != nil && q.masks() && !q.hides() {
		return grant, grant.checkMasked(n)
	}
	r := grant.Range
	if grant.Masked != nil || r.Start < 0 || r.Empty() || n > 0 && r.Len() > n || grant.Step < 1 {
		return Grant{}, &leaf.StoreError{Err: fmt.Errorf("tag %q: the store granted %v with step %d when asked for %d", b.tag, r, grant.Step, n)}
	}
	return grant, nil
}

func (b *Buffer) callMasked(ctx context.Context, n int64) (Grant, error) {
	store, ok := b.opts.store.(MaskedStore)
	if !ok {
		return Grant{}, ErrMasked
	}
	return store.AdvanceMasked(ctx, b.tag, n)
}

// called counts a call to the store.
func (b *Buffer) called(took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account.calls++
	b.account.callTime += took
}

// lose counts granted IDs that the buffer will not issue.
func (b *Buffer) lose(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account.lost += n
}
