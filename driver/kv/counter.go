package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

const (
	// roundTimeout bounds one round, however many swaps it takes.
	roundTimeout = 10 * time.Second

	// tries is how often a late round retries at once, from the cell in the conflict, before it
	// waits and reads.
	tries = 3

	// maxLate and maxWait bound how long a round waits for its rivals.
	maxLate = 32
	maxWait = time.Second

	// longRun is how many swaps in a row succeed before the process lets others try.
	longRun = 32
)

// A counter is one tag as this process moves it.
type counter struct {
	store *Store
	key   Key

	waiting []*call // guarded by Store.mu
	serving bool    // a goroutine takes from waiting; guarded by Store.mu

	// What follows is that goroutine's.
	cell Cell          // the last known cell; the zero Cell: unknown
	trip time.Duration // recent duration of a read and a swap
	run  int           // how many swaps succeeded in a row
	last time.Time     // the end of the last round
}

// A call is one Advance that waits for its counter.
type call struct {
	ctx  context.Context
	n    int64
	done chan outcome // of one

	strict bool // it is for a tag with strict order
	lossy  bool // and the backend may lose writes
	masked bool // or it is for one with a mask

	parent *tagText // the tag, if the counter is that of a period
}

type outcome struct {
	grant segment.Grant
	err   error
}

func (s *Store) advance(ctx context.Context, key Key, c *call) (segment.Grant, error) {
	c.ctx, c.done = ctx, make(chan outcome, 1)
	if err := s.join(key, c); err != nil {
		return segment.Grant{}, err
	}
	select {
	case o := <-c.done:
		return o.grant, o.err
	case <-ctx.Done():
		return segment.Grant{}, fmt.Errorf("%s has not answered yet: %w", s.db.name, ctx.Err())
	}
}

// join adds a call to the queue of its counter, unless the DB is closed: Close waits for the
// goroutines of the counters, so no goroutine may start after it.
func (s *Store) join(key Key, call *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db.ctx.Err() != nil {
		return leaf.ErrClosed
	}
	c := s.counters[key]
	if c == nil {
		c = &counter{store: s, key: key}
		s.counters[key] = c
	}
	c.waiting = append(c.waiting, call)
	if !c.serving {
		c.serving = true
		s.db.work.Go(c.serve)
	}
	return nil
}

// next takes the waiting calls, except those whose callers have left. Without any the goroutine
// ends, and the store forgets a counter that may not exist.
func (c *counter) next() []*call {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	calls := slices.DeleteFunc(c.waiting, gone)
	c.waiting = nil
	if len(calls) == 0 {
		c.serving = false
		if c.cell.Version == "" || c.key.Kind == Periods { // the number of periods grows forever
			delete(c.store.counters, c.key)
		}
	}
	return calls
}

func gone(c *call) bool { return c.ctx.Err() != nil }

func (c *counter) serve() {
	for calls := c.next(); len(calls) > 0; calls = c.next() {
		outcomes, err := c.round(calls)
		c.last = time.Now()
		for i, call := range calls {
			if err != nil {
				call.done <- outcome{err: err}
			} else {
				call.done <- outcomes[i]
			}
		}
	}
}

// round moves the counter for all calls at once. Its error is that of all of them; where
// the outcome of a swap is unknown, the range is lost.
func (c *counter) round(calls []*call) ([]outcome, error) {
	ctx, cancel := context.WithTimeout(c.store.db.ctx, roundTimeout)
	defer cancel()
	if err := c.store.marker.check(ctx); err != nil {
		return nil, err
	}
	if c.run >= longRun && time.Since(c.last) < c.trip {
		c.run = 0
		_ = sleep(ctx, c.trip/2)
	}
	fresh := false // cell was read in this round
	for late := 0; ; {
		if !fresh && c.crowded() || late > 0 && late%tries == 0 || c.cell.Version == "" {
			if err := c.wait(ctx, late); err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(calls, func(c *call) bool { return !gone(c) }) {
				return nil, context.Canceled // no caller is left
			}
			if err := c.read(ctx); err != nil {
				return nil, err
			}
			fresh = true
		}
		outcomes, err := c.move(ctx, calls, late)
		switch {
		case errors.Is(err, ErrConflict):
			if fresh {
				late++
			}
			fresh = true
		case errors.Is(err, errNothing) && fresh:
			return outcomes, nil
		case errors.Is(err, errNothing):
			c.cell = Cell{} // the known cell may be out of date: do not refuse by it
		default:
			return outcomes, err
		}
	}
}

// crowded reports whether others recently wanted the counter at the same time.
func (c *counter) crowded() bool {
	t, err := readTag(c.cell)
	return err == nil && t.Late > 0
}

// wait waits for a random part of the time that the rivals need.
func (c *counter) wait(ctx context.Context, late int) error {
	if t, err := readTag(c.cell); err == nil {
		late = max(late, t.Late)
	}
	most := min(time.Duration(min(late, maxLate))*c.trip, maxWait)
	if most <= 0 {
		return nil
	}
	return sleep(ctx, rand.N(most))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read reads the cell.
func (c *counter) read(ctx context.Context) (err error) {
	c.cell, err = c.store.db.backend.Get(ctx, c.key)
	if err == nil && c.cell.Version == "" && c.key.Kind == Tags {
		return cmp.Or(c.store.marker.recheck(ctx), leaf.ErrUnknownTag)
	}
	return err
}

// errNothing: no call gets anything, so there was no write.
var errNothing = errors.New("no call can be granted anything")

// move tries once to move the counter, from the known cell.
func (c *counter) move(ctx context.Context, calls []*call, late int) ([]outcome, error) {
	t, err := readTag(c.cell)
	if parent := latestParent(calls); parent != nil {
		t, err = periodText(c.key, t, err, parent)
	}
	if err != nil {
		c.cell = Cell{}
		return nil, err
	}
	was := t.MaxID
	outcomes := make([]outcome, len(calls))
	for i, call := range calls {
		if outcomes[i].err = t.checkOrder(call); outcomes[i].err == nil {
			outcomes[i].grant, outcomes[i].err = t.advance(call.n)
		}
	}
	if t.MaxID == was {
		return outcomes, errNothing
	}
	if t.Store == "" {
		// An older release, or an Init, has written the cell. The marker is read after the cell,
		// and the swap below finds the cell unchanged: both belong to the same store.
		if t.Store, err = c.store.marker.identity(ctx); err != nil {
			c.cell = Cell{}
			return nil, err
		}
	}
	t.Late = max(min(late, maxLate), t.Late*3/4)
	if err := c.swap(ctx, t); err != nil {
		return nil, err
	}
	for i := range outcomes {
		g := &outcomes[i].grant
		g.Server, g.Store, g.Version = c.cell.Server, t.Store, c.cell.mark()
	}
	return outcomes, nil
}

// latestParent returns the tag of a period with the highest MaxID that a caller has read; nil: the
// counter is that of a tag. A caller that begins after a raise shares rounds with earlier ones.
func latestParent(calls []*call) (latest *tagText) {
	for _, call := range calls {
		if latest == nil || call.parent != nil && call.parent.MaxID > latest.MaxID {
			latest = call.parent
		}
	}
	return latest
}

// swap has the cell hold t if it is as it is known to be.
func (c *counter) swap(ctx context.Context, t tagText) error {
	began := time.Now()
	now, err := c.store.db.backend.Swap(ctx, c.cell, t.text())
	c.cell = now
	c.trip += (2*time.Since(began) - c.trip) / 4
	if c.run++; err != nil {
		c.run = 0
	}
	if err != nil && !errors.Is(err, ErrConflict) {
		c.cell = Cell{}
	}
	return err
}
