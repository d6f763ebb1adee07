package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
)

// Close stops the buffer for good: later calls fail with [leaf.ErrClosed]. It waits for a call to
// the store in flight. Then it gives the unused end of the stock back if the store takes it, so
// that a single node's next ID after a restart follows its last. If ctx ends first, the rest is
// lost, safely. An error reports that giving back failed; the buffer is closed all the same.
func (b *Buffer) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.over() {
		b.mu.Unlock()
		return nil
	}
	b.closing = true
	if b.refill != nil {
		close(b.refill.closing)
	}
	busy := b.busy()
	b.mu.Unlock()

	quiet := true
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			quiet = false
		}
	}
	b.mu.Lock()
	unused, last, high := b.finish(fmt.Errorf("tag %q: %w", b.tag, leaf.ErrClosed))
	b.mu.Unlock()
	if !quiet || unused.Empty() {
		return nil
	}
	return b.giveBack(ctx, unused, last, high)
}

// giveBack returns unused, which ends at the last grant's end, to the store. It first tells the
// memory that the counter goes back: in the other order a crash between the two, or a failing
// memory, would look like a store that lost writes. The memory keeps high, the end of the issued
// IDs, and not the new counter: another node whose IDs end there may take these IDs and give back
// both.
func (b *Buffer) giveBack(ctx context.Context, unused leaf.Range, last Grant, high int64) error {
	returner, ok := b.opts.store.(Returner)
	if !ok {
		return nil
	}
	var err error
	if !last.Guarded {
		err = b.opts.Memory.Remember(b.tag, last.Source, Mark{High: high, Server: last.Server})
	}
	if err == nil {
		ctx, ended := b.begin(ctx, Call{Tag: b.tag, Return: true})
		err = returner.Return(ctx, b.tag, last, unused.Start)
		ended(0, err)
	}
	if errors.Is(err, leaf.ErrUnsupported) {
		return nil
	}
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.account.lost -= unused.Len()
		b.account.returned += unused.Len()
	}
	return err // it names the tag and the range
}

// finish seals all spans, first to last, wakes the waiting callers with err, and
// returns the last contiguous run of unreserved IDs, with the grant that
// it ends with and one past the highest ID below it that may have been issued; b.mu is held.
func (b *Buffer) finish(err error) (unused leaf.Range, last Grant, high int64) {
	if b.end != nil {
		return leaf.Range{}, Grant{}, 0
	}
	b.end = err
	b.cursorFloor.Store(math.MaxInt64)
	b.notFailing()
	if b.refill != nil {
		b.refill.cancel()
	}
	for _, s := range append([]*span{b.current.Load()}, b.queue...) {
		rest := s.seal()
		b.account.retired += rest.Start - s.start
		b.account.lost += rest.Len() // until it is given back
		grant := s.from.grant()
		touch := unused.End == rest.Start
		switch {
		case !unused.Empty() && touch && grant.sameCounter(last):
			rest.Start = unused.Start
		case rest.Start == grant.Range.Start:
			high = s.known
		default:
			high = rest.Start
		}
		unused, last = rest, grant
	}
	b.queue = nil
	b.wakeAll()
	return unused, last, high
}

// sameCounter reports whether the rest of g may go back together with the rest of an earlier grant.
// Another server may not know the earlier one, and have granted its IDs to another caller.
func (g *Grant) sameCounter(before Grant) bool {
	return g.Source == before.Source && g.Server == before.Server
}

// abandon ends the buffer with err, drops its stock, and returns when no call to
// the store is in flight any more.
func (b *Buffer) abandon(err error) {
	b.mu.Lock()
	b.finish(err)
	busy := b.busy()
	b.mu.Unlock()
	if busy != nil {
		<-busy
	}
}

// busy returns a channel that is closed once no call to the store is in flight, nil if none is. The
// buffer is over; b.mu is held.
func (b *Buffer) busy() <-chan struct{} {
	if b.refill != nil {
		return b.refill.done
	}
	if q := b.strict.Load(); q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.served != nil {
			return q.served
		}
	}
	return nil
}

// expire ends a buffer of a set, and drops it, if the store has never granted and no caller has
// asked recently.
func (b *Buffer) expire(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != nil || b.account.grants > 0 || b.refill != nil ||
		now.Sub(b.account.lastAt) <= unknownFor || now.Sub(b.health.retryAt) <= unknownFor {
		return
	}
	b.finish(b.exhausted(b.health.err))
	b.opts.set.tags.remove(b)
}
