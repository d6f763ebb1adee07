package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// errUnclaimed is why a new generator has no lease.
var errUnclaimed = errors.New("no worker ID has been claimed yet")

// A Generator issues the IDs of one layout under the leases of a [worker.Keeper]. It implements
// [leaf.Generator] and [worker.LeaseUser].
//
// A Generator runs a timer during traffic, at most as long as its lease. It needs no Close.
type Generator struct {
	layout Layout
	opts   Options
	ahead  int64 // Options.MaxAhead in milliseconds

	current atomic.Pointer[leaseCursor] // never nil
	_       [128]byte                   // separates the fields above from the ones below, which change often

	mu      sync.Mutex
	held    bool  // current is not sealed
	why     error // why not
	above   int64 // the tick after the last ID of earlier leases
	issued  uint64
	stalled int64 // since when the lease stops callers, Unix milliseconds; 0: it does not
	queue   waitQueue
	ticker  ticker
	waits   int64 // calls that had to wait
	refused int64 // calls that failed, but for those whose context ended
}

// New returns a generator without a lease. The error wraps [leaf.ErrInvalid] if the
// layout or an option is not valid.
func New(layout Layout, opts *Options) (*Generator, error) {
	if err := layout.Check(); err != nil {
		return nil, err
	}
	o, err := opts.withDefaults(layout)
	if err != nil {
		return nil, err
	}
	g := &Generator{layout: layout, opts: o, ahead: o.MaxAhead.Milliseconds(), why: errUnclaimed}
	g.current.Store(&leaseCursor{})
	g.stalled = g.opts.Clock.Now().UnixMilli()
	return g, nil
}

// Layout returns the layout.
func (g *Generator) Layout() Layout { return g.layout }

// Next returns one ID. If it has to wait, it waits for up to [Options.Wait] and until ctx ends. It
// fails with an error that wraps
//
//   - [leaf.ErrExhausted] if callers want IDs faster than the layout has them,
//   - [leaf.ErrNoLease] without a worker ID, or at the end of its lease,
//   - [leaf.ErrClock] if the clock is behind the times of the lease,
//   - [leaf.ErrOverflow] if the layout has run out of time, for good,
//   - or the cause of ctx's end.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	l := g.current.Load()
	gate, form := l.gate.Load(), l.form // read first: a read after the add waits for it
	if gate != 0 {
		end := l.cursor.Add(1)
		if end < gate || l.atGate(gate, end) {
			return form.compose(end - 1), nil
		}
	}
	pieces, err := g.wait(ctx, 1)
	if err != nil {
		return 0, err
	}
	return pieces[0].cursor.compose(pieces[0].from), nil
}

// Take appends n IDs to dst as few ranges: one for each tick, joined where they touch. The errors
// are those of [Generator.Next]. An n below 1, or above the number of IDs within [Options.MaxAhead]
// and [Options.Wait], wraps [leaf.ErrInvalid]. If the batch cannot be complete in time, Take fails
// at once and uses no IDs; if it learns so later, it loses the IDs.
func (g *Generator) Take(ctx context.Context, dst []leaf.Range, n int) ([]leaf.Range, error) {
	if most := g.largest(); n < 1 || uint64(n) > most {
		return dst, fmt.Errorf("take IDs: %w: n = %d is not in 1 … %d, which this layout has between %v ahead of the clock and %v later",
			leaf.ErrInvalid, n, most, max(g.opts.MaxAhead, 0), g.opts.Wait)
	}
	l := g.current.Load()
	if from, ok := l.batch(uint64(n), l.gate.Load()); ok {
		return l.appendRanges(dst, len(dst), from, from+uint64(n)), nil
	}
	pieces, err := g.wait(ctx, uint64(n))
	if err != nil {
		return dst, err
	}
	keep := len(dst)
	for _, p := range pieces {
		dst = p.cursor.appendRanges(dst, keep, p.from, p.to)
	}
	return dst, nil
}

// largest returns the number of IDs from the beginning of a tick to the last usable one at a call's
// time-out.
func (g *Generator) largest() uint64 {
	ticks := (g.ahead+g.opts.Wait.Milliseconds())/g.layout.tick() + 2
	if ticks > most(62)>>g.layout.SequenceBits {
		return uint64(most(62))
	}
	return min(uint64(ticks)<<g.layout.SequenceBits, math.MaxInt)
}

// Begin has the generator issue under lease; see [worker.LeaseUser]. Its first tick is
// not before the lease's floor, not before the clock's, after every tick that the generator has
// ever issued an ID in, and after those that a generator with its options issued until
// [worker.Lease.Shared].
func (g *Generator) Begin(lease *worker.Lease) { g.begin(lease) }

func (g *Generator) begin(lease lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finish(nil)
	if w := lease.Worker(); w < 0 || w > g.layout.MaxWorker() {
		g.why = fmt.Errorf("worker ID %d is not in 0 … %d, the range of the layout", w, g.layout.MaxWorker())
		return
	}
	now := g.opts.Clock.Now().UnixMilli()
	above := g.above
	if shared := lease.Shared(); !shared.IsZero() {
		above = max(above, g.layout.tickUp(shared.UnixMilli()+g.ahead+1))
	}
	l := newLeaseCursor(g.layout, lease, now, above, g.random())
	l.stock = newReserve(g.opts.Reserve)
	g.current.Store(l)
	g.held, g.why, g.stalled = true, nil, 0
	g.refresh(now)
	if g.queue.len() > 0 {
		g.start()
	}
}

// Seal ends the issuing under the present lease; see [worker.LeaseUser]. It returns the beginning
// of the tick after the last reserved ID. Callers get the reason. Waiting callers continue with the
// next lease if it begins in time.
func (g *Generator) Seal(why error) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.finish(why)
}

// finish seals the cursor, if a lease is held, and returns when its successor may begin,
// the zero Time for any time; g.mu is held.
func (g *Generator) finish(why error) time.Time {
	if why != nil {
		g.why = why
	} else if g.held {
		g.why = errors.New("the lease was handed back")
	}
	if !g.held {
		return time.Time{}
	}
	l := g.current.Load()
	above := l.seal()
	g.stop()
	g.held, g.issued, g.stalled = false, g.issued+l.issued, g.opts.Clock.Now().UnixMilli()
	if above == 0 {
		return time.Time{}
	}
	g.above = max(g.above, above)
	return g.layout.Start(above)
}

// random returns where an idle tick begins.
func (g *Generator) random() uint64 { return rand.Uint64N(uint64(g.opts.RandomStart)) }
