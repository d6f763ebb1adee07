package snowflake

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/worker"
)

func TestTakeContiguous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, nil)
		last := int64(-1)
		for i := range 3000 { // more than the clock allows at once: some have to wait
			n := 1 + i*1009%4096
			r, err := g.TakeContiguous(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			first, end := parts(t, g, r.Start), parts(t, g, r.End-1)
			if r.Len() != int64(n) || r.Start <= last || first.Tick != end.Tick {
				t.Fatalf("asked for %d after %d: %v, from tick %d to %d", n, last, r, first.Tick, end.Tick)
			}
			last = r.End - 1
		}
	})
}

// Without borrowing, each tick begins with the clock. A caller that waits gets a whole one, also
// on a busy machine, where the timer is late and the cursor is pulled over several ticks.
func TestTakeContiguousWithoutBorrowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := time.Now()
		late := worker.NewClockFrom(time.Now, func() time.Duration { return 7 * time.Since(zero) })
		g := newHeld(t, leafLayout, &Options{MaxAhead: -1, Clock: late})
		for i := range 300 {
			n := 4096 - i*1009%4096
			if r, err := g.TakeContiguous(t.Context(), n); err != nil || r.Len() != int64(n) {
				t.Fatalf("%d of %d: %v, %v", i, n, r, err)
			}
		}
	})
}

func TestTakeContiguousRefuses(t *testing.T) {
	g := newHeld(t, leafLayout, nil)
	_, err := g.TakeContiguous(t.Context(), 0)
	wantError(t, err, leaf.ErrInvalid)
	_, err = g.TakeContiguous(t.Context(), 4097)
	wantError(t, err, leaf.ErrNotContiguous, "4096", "1ms")
	_, err = newGenerator(t, leafLayout, &Options{Wait: time.Millisecond}).TakeContiguous(t.Context(), 4096)
	wantError(t, err, leaf.ErrNoLease)
}

func TestTakeContiguousBesideOthers(t *testing.T) {
	g := newHeld(t, leafLayout, nil)
	var ranges drivertest.Ranges
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := range 200 {
				if caller%2 == 0 {
					got, err := g.Take(t.Context(), nil, 1+i)
					if err != nil {
						t.Error(err)
						return
					}
					ranges.Add(got...)
					continue
				}
				r, err := g.TakeContiguous(t.Context(), 1+i*17)
				if err != nil || r.Len() != int64(1+i*17) {
					t.Errorf("%v: %v", r, err)
					return
				}
				ranges.Add(r)
			}
		})
	}
	wg.Wait()
	if err := ranges.Check(); err != nil {
		t.Fatal(err)
	}
}
