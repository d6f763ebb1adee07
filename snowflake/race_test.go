package snowflake

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// disjoint reports the first two overlapping ranges, and the number of IDs.
func disjoint(t *testing.T, ranges []leaf.Range) (n int64) {
	t.Helper()
	slices.SortFunc(ranges, func(a, b leaf.Range) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	for i, r := range ranges {
		n += r.Len()
		if i > 0 && ranges[i-1].End > r.Start {
			t.Fatalf("%v and %v overlap", ranges[i-1], r)
		}
	}
	return n
}

// A caller of a generator keeps its IDs and checks their order.
type caller struct {
	t    *testing.T
	g    *Generator
	got  []leaf.Range
	last int64
}

func (c *caller) next() error {
	id, err := c.g.Next(c.t.Context())
	if err == nil {
		c.keep(leaf.Range{Start: id, End: id + 1})
	}
	return err
}

func (c *caller) take(n int) error {
	ranges, err := c.g.Take(c.t.Context(), nil, n)
	for _, r := range ranges {
		c.keep(r)
		n -= int(r.Len())
	}
	if err == nil && n != 0 {
		c.t.Errorf("a batch lacks %d IDs", n)
	}
	return err
}

func (c *caller) keep(r leaf.Range) {
	if r.Start <= c.last {
		c.t.Errorf("%v after %d", r, c.last)
	}
	if i := len(c.got) - 1; i >= 0 && c.got[i].End == r.Start {
		c.got[i].End = r.End
	} else {
		c.got = append(c.got, r)
	}
	c.last = r.End - 1
}

// run has callers do something concurrently and returns all that they got.
func run(t *testing.T, g *Generator, callers int, do func(i int, c *caller)) []leaf.Range {
	t.Helper()
	all := make([]caller, callers)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = caller{t: t, g: g, last: -1}
		wg.Go(func() { do(i, &all[i]) })
	}
	wg.Wait()
	var got []leaf.Range
	for _, c := range all {
		got = append(got, c.got...)
	}
	return got
}

func TestConcurrentCallersShareNothing(t *testing.T) {
	const callers, each = 16, 40_000
	for _, layout := range []Layout{leafLayout, {leafLayout.Epoch, time.Millisecond, 45, 10, 8}} {
		for _, ahead := range []time.Duration{-1, 50 * time.Millisecond, time.Hour} {
			g := newHeld(t, layout, &Options{MaxAhead: ahead, Wait: time.Minute})
			want := atomic.Int64{}
			got := run(t, g, callers, func(i int, c *caller) {
				for j := range each >> (12 - layout.SequenceBits) {
					n, err := 1, error(nil)
					if i%4 == 0 && j%100 == 0 {
						n = 1 + i*j%500
						err = c.take(n)
					} else {
						err = c.next()
					}
					if err != nil {
						t.Error(err)
						return
					}
					want.Add(int64(n))
				}
			})
			if n := disjoint(t, got); n != want.Load() {
				t.Errorf("%d IDs, want %d", n, want.Load())
			}
			if st := g.Stats(); st.Issued < want.Load() || st.Issued > want.Load()+want.Load()/10 {
				t.Errorf("%d IDs, statistics say %d", want.Load(), st.Issued)
			}
		}
	}
}

// Leases come and go, all of the same few worker IDs, each with the floor that the end
// of the one before gave: no ID twice, and nothing after the end.
func TestLeasesChangeUnderLoad(t *testing.T) {
	const callers, leases, workers = 8, 400, 3
	g := newGenerator(t, leafLayout, &Options{MaxAhead: time.Hour, Wait: time.Minute})
	var over atomic.Bool
	floors := make([]time.Time, workers)
	short, cancel := context.WithCancel(t.Context())
	cancel()
	change := func(c *caller) { // the first caller never waits, and changes the leases
		for i := range leases {
			w := i % workers
			limit := time.Time{}
			if i%5 == 0 {
				limit = floors[w].Add(time.Duration(i%50) * time.Millisecond)
			}
			g.Begin(worker.Unfenced(int64(w), floors[w], limit))
			for range 500 {
				id, err := g.Next(short)
				if err != nil {
					break
				}
				c.keep(leaf.Range{Start: id, End: id + 1})
			}
			end := g.Seal(errDown)
			if !limit.IsZero() && end.After(limit) {
				t.Errorf("sealed at %v, beyond the limit %v", end, limit)
			}
			if end.After(floors[w]) {
				floors[w] = end
			}
		}
		over.Store(true)
		g.Begin(worker.Unfenced(9, time.Time{}, time.Time{})) // for the callers that wait
	}
	got := run(t, g, callers, func(i int, c *caller) {
		if i == 0 {
			change(c)
			return
		}
		for j := 0; !over.Load(); j++ {
			err := error(nil)
			if i%4 == 0 && j%100 == 0 {
				err = c.take(1 + j%3000)
			} else {
				err = c.next()
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	if n := disjoint(t, got); n < leases*400 {
		t.Errorf("only %d IDs", n)
	}
}

// Callers who give up at once and come again: they get no ID twice, and the cursor
// stays within a few slots of the limit.
func TestGivingUpBurnsNothing(t *testing.T) {
	const callers = 32
	g := newHeld(t, leafLayout, &Options{MaxAhead: 5 * time.Millisecond, Wait: time.Nanosecond})
	var far atomic.Int64
	deadline := time.Now().Add(300 * time.Millisecond)
	got := run(t, g, callers, func(i int, c *caller) {
		for time.Now().Before(deadline) {
			for range 100 {
				if err := c.next(); err != nil && !errors.Is(err, leaf.ErrExhausted) {
					t.Error(err)
					return
				}
			}
			g.mu.Lock()
			l := g.current.Load()
			far.Store(max(far.Load(), int64(l.cursor.Load())-int64(l.limit)))
			g.mu.Unlock()
		}
	})
	if far.Load() > callers {
		t.Errorf("the cursor went %d slots beyond the limit", far.Load())
	}
	n := disjoint(t, got)
	if lost := g.Stats().Issued - n; n < 10_000 || lost > n/10 {
		t.Errorf("%d IDs in 300 ms, %d lost", n, lost)
	}
	t.Logf("%d IDs, %d lost, at most %d beyond", n, g.Stats().Issued-n, far.Load())
}
