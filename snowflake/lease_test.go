package snowflake

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

func begin(t testing.TB, layout Layout, opts *Options, l lease) *Generator {
	t.Helper()
	g := newGenerator(t, layout, opts)
	g.begin(l)
	return g
}

func nowMs() int64 { return time.Now().UnixMilli() }

// keep grows l as a keeper does that takes delay to write its state file, until
// the returned function is called.
func keep(l *fakeLease, delay time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-time.After(delay):
				l.grow(l.needed.Load())
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// The generator asks the lease to grow before callers feel its limit.
func TestNeed(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			layout := Layout{leafLayout.Epoch, tick, 39, 4, 20}
			l := newFakeLease(7, 0, nowMs())
			g := begin(t, layout, nil, l)
			reach := time.Now().Add(worker.DefaultMaxAhead).Truncate(tick).Add(tick).UnixMilli()
			if got := l.needed.Load(); got != reach+stock {
				t.Fatalf("tick %v: asked for %d, want %d", tick, got-nowMs(), reach+stock-nowMs())
			}
			stop := keep(l, 5*time.Millisecond)
			if took := elapsed(func() { next(t, g) }); took > 8*time.Millisecond {
				t.Errorf("tick %v: the first call took %v", tick, took)
			}
			for range 5000 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if took := elapsed(func() { next(t, g) }); took != 0 {
					t.Fatalf("tick %v: a call waited for %v", tick, took)
				}
			}
			if calls := l.calls.Load(); calls > 200 {
				t.Errorf("tick %v: asked %d times in 5 s", tick, calls)
			}
			stop()
			time.Sleep(time.Hour)
			defer keep(l, 5*time.Millisecond)()
			if took := elapsed(func() { next(t, g) }); took > 8*time.Millisecond {
				t.Errorf("tick %v: the first call after an hour took %v", tick, took)
			}
		})
	}
}

// A lease that does not grow is used up to its end; then callers hear of it, first
// after their wait and then at once, until it grows again.
func TestOutageOfTheRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := time.Now().Add(20 * time.Minute)
		l := newFakeLease(7, 0, limit.UnixMilli())
		g := begin(t, leafLayout, nil, l)
		serving := func(pause time.Duration) {
			t.Helper()
			var last Parts
			for time.Now().Before(limit) {
				last = next(t, g)
				time.Sleep(pause)
			}
			if gap := limit.Sub(last.Time); gap < 0 || gap > pause+finest {
				t.Errorf("the last ID is %v before the limit", gap)
			}
			time.Sleep(finest) // the next beat shuts the gate
			synctest.Wait()
		}
		serving(97 * time.Millisecond)
		failing := func(want time.Duration) {
			t.Helper()
			took := elapsed(func() {
				_, err := g.Next(t.Context())
				wantError(t, err, leaf.ErrNoLease, "worker ID 7", limit.UTC().Format(time.RFC3339Nano))
			})
			if took > want || took < want-finest {
				t.Errorf("failed after %v, want %v", took, want)
			}
		}
		failing(time.Second)
		for range 1000 {
			failing(0)
			time.Sleep(10 * time.Millisecond)
		}
		limit = time.Now().Add(5 * time.Second)
		l.grow(limit.UnixMilli())
		time.Sleep(10 * time.Millisecond)
		serving(10 * time.Millisecond)
		failing(time.Second) // another outage
	})
}

// A burst cannot borrow time beyond the end of the lease.
func TestBurstEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLease(7, 0, nowMs()+50)
		g := begin(t, leafLayout, &Options{RandomStart: 1}, l)
		var n int64
		for {
			if _, err := g.Next(t.Context()); err != nil {
				wantError(t, err, leaf.ErrNoLease)
				break
			}
			n++
		}
		if n != 50*4096 {
			t.Errorf("%d IDs, want %d", n, 50*4096)
		}
		if end := g.Seal(errDown); !end.Equal(l.Limit()) {
			t.Errorf("sealed at %v, the lease ends at %v", end, l.Limit())
		}
	})
}

func TestFloorAheadOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		floor := time.Now().Add(2500 * time.Millisecond)
		g := begin(t, leafLayout, nil, newFakeLease(7, floor.UnixMilli(), math.MaxInt64))
		var p Parts
		if took := elapsed(func() { p = next(t, g) }); took != 500*time.Millisecond || !p.Time.Equal(floor) {
			t.Errorf("half a second beyond what may be borrowed: %+v after %v", p, took)
		}
		g = begin(t, leafLayout, nil, newFakeLease(7, nowMs()+3_600_000, math.MaxInt64))
		took := elapsed(func() {
			_, err := g.Next(t.Context())
			wantError(t, err, leaf.ErrClock, "worker ID 7", "2000-01-01T01:00:00.5Z")
		})
		if took != 0 {
			t.Errorf("an hour ahead: failed after %v", took)
		}
	})
}

// Floors round up and limits round down: every tick between them is wholly in the lease.
func TestLeaseInCoarseTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := Layout{leafLayout.Epoch, 10 * time.Second, 30, 10, 4}
		now := time.Now()
		l := newFakeLease(7, now.UnixMilli()+1, now.UnixMilli()+29_999)
		g := begin(t, layout, &Options{MaxAhead: time.Minute, RandomStart: 1}, l)
		ranges := take(t, g, 16)
		for _, id := range []int64{ranges[0].Start, ranges[len(ranges)-1].End - 1} {
			if p := parts(t, g, id); !p.Time.Equal(now.Add(10 * time.Second)) {
				t.Errorf("got %+v", p)
			}
		}
		_, err := g.Next(t.Context())
		wantError(t, err, leaf.ErrNoLease)
	})
}

// A layout serves its last tick to the end, and then never again.
func TestLayoutRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := Layout{time.Now(), time.Second, 5, 10, 12}
		g := begin(t, layout, &Options{MaxAhead: -1}, newFakeLease(7, 0, math.MaxInt64))
		time.Sleep(31*time.Second + 999*time.Millisecond)
		if p := next(t, g); !p.Time.Equal(layout.Last()) {
			t.Fatalf("in the last tick: %+v", p)
		}
		_, err := g.Take(t.Context(), nil, 5000)
		wantError(t, err, leaf.ErrOverflow)
		next(t, g)
		for range 3 {
			time.Sleep(time.Second)
			took := elapsed(func() {
				_, err := g.Next(t.Context())
				wantError(t, err, leaf.ErrOverflow, "2000-01-01T00:00:32Z")
			})
			if took != 0 {
				t.Errorf("failed after %v", took)
			}
		}
		g.Seal(errDown)
		g.begin(newFakeLease(8, 0, math.MaxInt64))
		_, err = g.Next(t.Context())
		wantError(t, err, leaf.ErrOverflow)
	})
}

// The clock of a layout whose epoch is yet to come is behind.
func TestEpochInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := leafLayout
		layout.Epoch = time.Now().Add(time.Hour)
		g := begin(t, layout, nil, newFakeLease(7, 0, math.MaxInt64))
		_, err := g.Next(t.Context())
		wantError(t, err, leaf.ErrClock)
		time.Sleep(time.Hour)
		next(t, g)
	})
}

// A clock steps back, stops, or jumps forwards by its time service.
func TestClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var step, followed atomic.Int64
		zero := time.Now()
		mono := func() time.Duration { return time.Since(zero) + time.Duration(step.Load()+followed.Load()) }
		clock := worker.NewClockFrom(time.Now, mono)
		g := begin(t, leafLayout, &Options{Clock: clock, RandomStart: 1}, newFakeLease(7, 0, math.MaxInt64))
		last := next(t, g)
		check := func(want time.Duration) {
			t.Helper()
			for range 100 {
				p := next(t, g)
				if p.Tick < last.Tick || p.Tick == last.Tick && p.Sequence <= last.Sequence {
					t.Fatalf("%+v after %+v", p, last)
				}
				last = p
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			if d := time.Until(last.Time); d < want-2*time.Millisecond || d > want+2*time.Millisecond {
				t.Errorf("IDs are %v ahead of the wall clock, want %v", d, want)
			}
		}
		check(0)
		step.Store(int64(time.Minute))
		check(time.Minute)
		step.Store(int64(59 * time.Second)) // back by less than MaxAhead: the tick stays
		check(time.Minute - 100*time.Millisecond)
		time.Sleep(time.Second)
		check(59 * time.Second)
		followed.Store(int64(time.Minute))
		check(time.Minute + 59*time.Second)
		step.Store(int64(-time.Hour))
		time.Sleep(time.Second)
		_, err := g.Take(t.Context(), nil, 3000*4096)
		wantError(t, err, leaf.ErrClock)
	})
}
