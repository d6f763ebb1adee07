package snowflake

import (
	"container/list"
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// A waiter is a call that did not get all its slots at once.
type waiter struct {
	need   uint64        // how many it still lacks
	pieces []piece       // its slots so far
	done   chan struct{} // closed when the caller has all of its slots
	place  *list.Element
}

// A piece is a run of reserved slots of a cursor.
type piece struct {
	cursor   *leaseCursor
	from, to uint64
}

// A waitQueue is the waiting calls, in the order of their arrival.
type waitQueue struct {
	list    list.List
	backlog uint64 // what all of them lack
}

func (q *waitQueue) len() int { return q.list.Len() }

func (q *waitQueue) join(n uint64) *waiter {
	w := &waiter{need: n, done: make(chan struct{})}
	w.place = q.list.PushBack(w)
	q.backlog += n
	return w
}

func (q *waitQueue) leave(w *waiter) {
	q.list.Remove(w.place)
	q.backlog -= w.need
}

// serve hands what l has below its limit to the calls that wait, and opens the gate if
// that leaves something for others.
func (q *waitQueue) serve(l *leaseCursor, open bool) {
	for e := q.list.Front(); e != nil; e = q.list.Front() {
		w := e.Value.(*waiter)
		from, to := l.reserve(w.need, l.limit)
		if from == to {
			break
		}
		w.pieces = append(w.pieces, piece{l, from, to})
		w.need -= to - from
		q.backlog -= to - from
		if w.need == 0 {
			q.leave(w)
			close(w.done)
		}
	}
	gate := uint64(0)
	if open && l.cursor.Load() < l.limit { // so the queue is empty
		gate = l.limit
	}
	if l.gate.Load() != gate {
		l.gate.Store(gate)
	}
}

// batch reserves n slots below the gate, or fails.
func (l *leaseCursor) batch(n, gate uint64) (from uint64, ok bool) {
	for {
		from = l.cursor.Load()
		if from >= gate || gate-from < n {
			return 0, false
		}
		if l.cursor.CompareAndSwap(from, from+n) {
			if from+n == gate {
				l.gate.CompareAndSwap(gate, 0)
			}
			return from, true
		}
	}
}

// wait returns n slots once they are reserved, in order.
func (g *Generator) wait(ctx context.Context, n uint64) ([]piece, error) {
	w, timeout, err := g.join(ctx, n)
	if timeout == 0 {
		return w.pieces, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.done:
		return w.pieces, nil
	case <-timer.C:
		err = g.leave(w, nil)
	case <-ctx.Done():
		err = g.leave(w, ended(ctx))
	}
	return w.pieces, err
}

// join queues a call for n slots, unless waiting cannot help. A timeout of 0 says that the
// call got them at once, or the error.
func (g *Generator) join(ctx context.Context, n uint64) (*waiter, time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock.Now().UnixMilli()
	g.refresh(now)
	timeout := g.remainingWait(now)
	budget := timeout
	if end, ok := ctx.Deadline(); ok && n > 1 { // at the deadline a batch loses its slots
		budget = min(budget, max(time.Until(end), 0))
	}
	if err := g.checkBudget(now, n, budget); err != nil {
		g.refused++
		return &waiter{}, 0, err
	}
	if ctx.Err() != nil && !g.stocked(n) { // it could only lose its slots
		return &waiter{}, 0, ended(ctx)
	}
	w := g.queue.join(n)
	if g.held {
		g.start()
		g.queue.serve(g.current.Load(), true)
	}
	switch {
	case w.need == 0:
		return w, 0, nil
	case timeout == 0:
		g.queue.leave(w)
		g.refused++
		return w, 0, g.unavailable(now)
	}
	g.waits++
	return w, timeout, nil
}

// stocked reports whether n slots can be had without a wait; g.mu is held.
func (g *Generator) stocked(n uint64) bool {
	l := g.current.Load()
	cursor := l.cursor.Load()
	return g.held && g.queue.len() == 0 && cursor < l.limit && l.limit-cursor >= n
}

// ended is the error of a call whose context has ended.
func ended(ctx context.Context) error { return fmt.Errorf("wait for an ID: %w", context.Cause(ctx)) }

// remainingWait returns how long a call that comes now may wait; g.mu is held.
func (g *Generator) remainingWait(now int64) time.Duration {
	if g.stalled == 0 {
		return g.opts.Wait
	}
	lasted := min(max(now-g.stalled, 0), g.opts.Wait.Milliseconds()+1)
	return max(g.opts.Wait-time.Duration(lasted)*time.Millisecond, 0)
}

// leave takes w out of the queue because its context ended, with that error, or because it
// has waited long enough: nil. If w has just got all it needs, the call succeeds.
func (g *Generator) leave(w *waiter, cause error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.need == 0 {
		return nil
	}
	g.queue.leave(w)
	if cause != nil {
		return cause
	}
	g.refused++
	return g.unavailable(g.opts.Clock.Now().UnixMilli())
}

// checkBudget returns why n slots, after those that others wait for, cannot be had within
// budget, nil if they can; g.mu is held.
func (g *Generator) checkBudget(now int64, n uint64, budget time.Duration) error {
	if !g.held {
		return nil
	}
	if g.opts.Reject {
		budget = 0
	}
	l := g.current.Load()
	last := l.cursor.Load() + g.queue.backlog + n
	switch {
	case last > l.end:
		return g.overflowErr()
	case last > max(l.limit, l.clockLimit(now+g.ahead+budget.Milliseconds())):
		return g.clockErr(l, now)
	}
	return nil
}

// unavailable returns why the generator has no slots now; g.mu is held.
func (g *Generator) unavailable(now int64) error {
	l := g.current.Load()
	switch {
	case !g.held:
		return fmt.Errorf("%w: %w", leaf.ErrNoLease, g.why)
	case l.cursor.Load() >= l.end:
		return g.overflowErr()
	case l.allowed.lease <= l.allowed.clock:
		return fmt.Errorf("%w: that of worker ID %d allows times before %s and was not extended: look at the registry and the state file",
			leaf.ErrNoLease, l.lease.Worker(), formatTime(l.lease.Limit().UnixMilli()))
	}
	return g.clockErr(l, now)
}

// clockErr returns why the clock does not allow more; g.mu is held.
func (g *Generator) clockErr(l *leaseCursor, now int64) error {
	if first := l.tickOf(l.first); l.first >= l.allowed.clock {
		return fmt.Errorf("%w: worker ID %d may issue times from %s on, and it is %s; at most %v ahead is allowed",
			leaf.ErrClock, l.lease.Worker(), formatTime(l.layout.start(first)), formatTime(now), g.opts.MaxAhead)
	}
	return fmt.Errorf("%w: more than %d in %v are asked for, and what may be borrowed, %v, is used up",
		leaf.ErrExhausted, l.mask+1, g.layout.Tick, g.opts.MaxAhead)
}

func (g *Generator) overflowErr() error {
	return fmt.Errorf("%w: the layout ends on %s", leaf.ErrOverflow, formatTime(g.layout.start(g.layout.ticks())))
}

func formatTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
