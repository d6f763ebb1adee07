package snowflake

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ leaf.Generator   = (*Generator)(nil)
	_ worker.LeaseUser = (*Generator)(nil)
)

// leafLayout is Java Leaf's, with an epoch before the clock of a synctest bubble, which begins in
// the year 2000.
var leafLayout = Layout{time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Millisecond, 41, 10, 12}

func newGenerator(t testing.TB, layout Layout, opts *Options) *Generator {
	t.Helper()
	g, err := New(layout, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newHeld returns a generator that holds worker ID 7, for as long as a test may last.
func newHeld(t testing.TB, layout Layout, opts *Options) *Generator {
	t.Helper()
	g := newGenerator(t, layout, opts)
	g.Begin(worker.Unfenced(7, time.Time{}, time.Time{}))
	return g
}

func next(t testing.TB, g *Generator) Parts {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return parts(t, g, id)
}

func parts(t testing.TB, g *Generator, id int64) Parts {
	t.Helper()
	p, err := g.Layout().Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func take(t testing.TB, g *Generator, n int) []leaf.Range {
	t.Helper()
	ranges, err := g.Take(t.Context(), nil, n)
	if err != nil {
		t.Fatal(err)
	}
	return ranges
}

// count returns the number of IDs, which must increase.
func count(t testing.TB, ranges []leaf.Range) (n int64) {
	t.Helper()
	last := int64(-1)
	for _, r := range ranges {
		if r.Empty() || r.Start <= last {
			t.Fatalf("range %v after %d", r, last)
		}
		last = r.End - 1
		n += r.Len()
	}
	return n
}

func wantError(t testing.TB, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

// elapsed calls f and returns how long it took.
func elapsed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

func TestNewRefuses(t *testing.T) {
	for _, opts := range []Options{{RandomStart: -1}, {RandomStart: 4097}, {Wait: -1}} {
		if _, err := New(leafLayout, &opts); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%+v: error %v", opts, err)
		}
	}
	if _, err := New(Layout{}, nil); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("no layout: error %v", err)
	}
	newGenerator(t, leafLayout, &Options{RandomStart: 4096})
	newGenerator(t, Layout{leafLayout.Epoch, time.Millisecond, 1, 0, 62}, nil)
	newGenerator(t, Layout{leafLayout.Epoch, time.Millisecond, 63, 0, 0}, nil)
}

func TestNextCarriesTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, nil)
		for range 5 {
			for range 50 {
				if p := next(t, g); !p.Time.Equal(time.Now()) || p.Worker != 7 {
					t.Fatalf("got %+v at %v", p, time.Now())
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestIdleTicksBeginAtRandom(t *testing.T) {
	for _, width := range []int64{0, 1, LeafRandomStart} {
		synctest.Test(t, func(t *testing.T) {
			g := newHeld(t, leafLayout, &Options{RandomStart: width})
			seen := map[int64]bool{}
			largest := int64(0)
			for range 2000 {
				p := next(t, g)
				seen[p.Sequence], largest = true, max(largest, p.Sequence)
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			most := max(width, 1)
			if width == 0 {
				most = 4096
			}
			if largest >= most || largest < most*9/10-1 || int64(len(seen)) < min(most, 1000)*9/10 {
				t.Errorf("width %d: %d values up to %d", width, len(seen), largest)
			}
		})
	}
}

func TestTakeIsARangeForEachTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{RandomStart: 1})
		kept := leaf.Range{Start: 0, End: parts(t, g, 0).Tick + 1}
		got, err := g.Take(t.Context(), []leaf.Range{kept}, 10_000)
		if err != nil || len(got) != 4 || got[0] != kept || count(t, got[1:]) != 10_000 {
			t.Fatalf("got %v, %v", got, err)
		}
		if p := next(t, g); p.Sequence != 10_000-2*4096 {
			t.Fatalf("then %+v", p)
		}
		if got := take(t, g, 5); len(got) != 1 || got[0].Len() != 5 {
			t.Fatalf("then %v", got)
		}
	})
}

// Without worker bits the ticks touch.
func TestTakeJoinsRanges(t *testing.T) {
	g := newGenerator(t, Layout{leafLayout.Epoch, time.Millisecond, 51, 0, 12}, nil)
	g.Begin(worker.Unfenced(0, time.Time{}, time.Time{}))
	dst := take(t, g, 10)
	got, err := g.Take(t.Context(), dst, 100_000)
	if err != nil || len(got) != 2 || got[1].Len() != 100_000 {
		t.Fatalf("got %v, %v", got, err)
	}
}

// A call that may not wait uses nothing up where it would have to.
func TestTakeWithoutWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{MaxAhead: -1, RandomStart: 1})
		next(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := g.Take(ctx, nil, 5000)
		wantError(t, err, context.Canceled)
		_, err = g.TakeContiguous(ctx, 4096)
		wantError(t, err, context.Canceled)
		if got, err := g.Take(ctx, nil, 4095); err != nil || parts(t, g, got[0].Start).Sequence != 1 {
			t.Fatalf("the rest of the tick: %v, %v", got, err)
		}
	})
}

func TestTakeRefuses(t *testing.T) {
	g := newHeld(t, leafLayout, &Options{Clock: frozen(), RandomStart: 1})
	dst := []leaf.Range{{Start: 1, End: 2}}
	for _, n := range []int{0, -1, math.MinInt, 4096*3002 + 1, math.MaxInt} {
		got, err := g.Take(t.Context(), dst, n)
		wantError(t, err, leaf.ErrInvalid)
		if len(got) != 1 {
			t.Errorf("Take(%d) gave %v", n, got)
		}
	}
	before := next(t, g)
	for range 3 { // possible with a running clock, but not after the IDs already taken
		_, err := g.Take(t.Context(), dst, 4096*3002)
		wantError(t, err, leaf.ErrExhausted)
	}
	if after := next(t, g); after.Tick != before.Tick || after.Sequence != before.Sequence+1 {
		t.Errorf("refused calls used up IDs: %+v after %+v", after, before)
	}
}

// frozen returns a clock that always shows one time in the year 2000.
func frozen() *worker.Clock {
	wall := func() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }
	return worker.NewClockFrom(wall, func() time.Duration { return 0 })
}

func TestNoLeaseYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, nil)
		took := elapsed(func() {
			_, err := g.Next(t.Context())
			wantError(t, err, leaf.ErrNoLease, "no worker ID has been claimed yet")
		})
		if took != time.Second {
			t.Errorf("waited for %v", took)
		}
		if n := g.Seal(errDown); !n.IsZero() {
			t.Errorf("Seal of nothing returned %v", n)
		}
		took = elapsed(func() {
			_, err := g.Take(t.Context(), nil, 3)
			wantError(t, err, leaf.ErrNoLease, "registry is down")
			wantError(t, err, errDown)
		})
		if took != 0 {
			t.Errorf("waited for %v although there has been no lease for longer than that", took)
		}
	})
}

var errDown = errors.New("registry is down")

func TestSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, nil)
		if n := g.Seal(errDown); !n.IsZero() {
			t.Fatalf("nothing was issued, sealed at %v", n)
		}
		g.Begin(worker.Unfenced(8, time.Time{}, time.Time{}))
		last := next(t, g)
		time.Sleep(10 * time.Millisecond) // the coarse clock moves on without calls
		if n, want := g.Seal(errDown), last.Time.Add(time.Millisecond); !n.Equal(want) {
			t.Fatalf("sealed at %v, want %v", n, want)
		}
		if n := g.Seal(errors.New("again")); !n.IsZero() {
			t.Fatalf("sealed again at %v", n)
		}
		time.Sleep(2 * time.Second)
		_, err := g.Next(t.Context())
		wantError(t, err, leaf.ErrNoLease, "again")
	})
}

// Ticks of a second: what Seal returns is the end of the tick.
func TestSealRoundsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, Layout{leafLayout.Epoch, time.Second, 31, 19, 13}, nil)
		time.Sleep(300 * time.Millisecond)
		p := next(t, g)
		if n := g.Seal(errDown); !n.Equal(p.Time.Add(time.Second)) {
			t.Errorf("sealed at %v, the last tick is %v", n, p.Time)
		}
	})
}

func TestIDsIncreaseOverLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, nil)
		last := Parts{Tick: -1}
		for i := range 300 {
			g.Begin(worker.Unfenced(int64((i*37)%1024), time.Time{}, time.Time{}))
			p := next(t, g)
			if p.Tick <= last.Tick || p.Worker != int64((i*37)%1024) {
				t.Fatalf("%+v after %+v", p, last)
			}
			last = p
			if n := g.Seal(errDown); !n.Equal(p.Time.Add(time.Millisecond)) {
				t.Fatalf("sealed at %v after %+v", n, p)
			}
		}
		if ahead := time.Until(last.Time); ahead != 299*time.Millisecond {
			t.Errorf("300 leases in no time end %v ahead", ahead)
		}
	})
}

// A lease that follows another without a Seal ends that all the same.
func TestBeginSeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, nil)
		first, old := next(t, g), g.current.Load()
		g.Begin(worker.Unfenced(8, time.Time{}, time.Time{}))
		if p := next(t, g); p.Tick <= first.Tick || p.Worker != 8 {
			t.Errorf("%+v after %+v", p, first)
		}
		if old.cursor.Load() < sealed {
			t.Error("the lease before was not sealed")
		}
	})
}

// A caller that waits at the end of the lease continues with the next one.
func TestWaitersMoveToTheNextLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, &Options{MaxAhead: time.Millisecond})
		g.Begin(worker.Unfenced(1, time.Time{}, time.Now().Add(time.Millisecond)))
		first := take(t, g, 1)
		var got []leaf.Range
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = g.Take(t.Context(), nil, 10_000)
		}()
		synctest.Wait()
		if st := g.Stats(); st.Waiting != 1 {
			t.Fatalf("%+v", st)
		}
		g.Seal(errDown)
		time.Sleep(500 * time.Millisecond)
		g.Begin(worker.Unfenced(2, time.Time{}, time.Time{}))
		<-done
		if err != nil || count(t, append(first, got...)) != 10_001 {
			t.Fatal(got, err)
		}
		if w := parts(t, g, got[len(got)-1].Start).Worker; w != 2 {
			t.Errorf("the last IDs are of worker ID %d", w)
		}
	})
}

func TestWorkerIDBeyondTheLayout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, nil)
		for _, w := range []int64{1024, -1} {
			g.Begin(worker.Unfenced(w, time.Time{}, time.Time{}))
			_, err := g.Next(t.Context())
			wantError(t, err, leaf.ErrNoLease, "is not in 0 … 1023")
		}
	})
}

// A burst borrows from the future, up to MaxAhead; then the clock sets the pace.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{MaxAhead: 100 * time.Millisecond, RandomStart: 1})
		took := elapsed(func() { take(t, g, 101*4096) })
		g.Stats()
		if st := g.Stats(); took != 0 || st.Ahead != 100*time.Millisecond || st.Issued != 101*4096 || !st.Held || st.Worker != 7 {
			t.Errorf("after %v: %+v", took, st)
		}
		took = elapsed(func() {
			for range 20 * 4096 {
				next(t, g)
			}
		})
		if took != 20*time.Millisecond {
			t.Errorf("20 ticks took %v", took)
		}
		if took = elapsed(func() { take(t, g, 500*4096) }); took != 500*time.Millisecond {
			t.Errorf("500 ticks took %v", took)
		}
		took = elapsed(func() {
			_, err := g.Take(t.Context(), nil, 1001*4096)
			wantError(t, err, leaf.ErrExhausted)
		})
		if took != 0 {
			t.Errorf("a batch that cannot come in time failed after %v", took)
		}
		if took = elapsed(func() { take(t, g, 1) }); took != time.Millisecond {
			t.Errorf("the next ID took %v: refused batches use up IDs", took)
		}
	})
}

// One ID a tick: no ID is lost, however many callers wait.
func TestOneIDATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, Layout{leafLayout.Epoch, 10 * time.Millisecond, 41, 10, 0}, &Options{MaxAhead: -1})
		var n atomic.Int64
		took := elapsed(func() {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					for range 10 {
						if _, err := g.Next(t.Context()); err != nil {
							t.Error(err)
						}
						n.Add(1)
					}
				})
			}
			wg.Wait()
		})
		if n.Load() != 500 || took > 5*time.Second {
			t.Errorf("%d IDs took %v", n.Load(), took)
		}
	})
}

// The generator refuses callers at once if the clock cannot serve them within their wait. It serves
// the others. Giving up uses no IDs.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := &Options{MaxAhead: -1, Wait: 100 * time.Millisecond}
		g := newHeld(t, Layout{leafLayout.Epoch, 10 * time.Millisecond, 41, 10, 0}, opts)
		var served, refused atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				for begin := time.Now(); time.Since(begin) < time.Second; time.Sleep(time.Millisecond) {
					_, err := g.Next(t.Context())
					if err == nil {
						served.Add(1)
						continue
					}
					refused.Add(1)
					if !errors.Is(err, leaf.ErrExhausted) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if refused.Load() == 0 || served.Load() < 101 || served.Load() > 120 {
			t.Errorf("%d served, %d refused", served.Load(), refused.Load())
		}
		if st := g.Stats(); st.Ahead != 0 || st.Waiting != 0 || st.Refused != refused.Load() || st.Waits < 50 {
			t.Errorf("after the rush: %+v", st)
		}
		if p := next(t, g); !p.Time.Equal(time.Now().Truncate(10 * time.Millisecond)) {
			t.Errorf("%v after the rush: %+v", time.Now(), p)
		}
	})
}

// What others in the queue wait for is not there for those behind them.
func TestBatchesBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{MaxAhead: -1})
		var wg sync.WaitGroup
		wg.Go(func() { take(t, g, 900*4096) })
		synctest.Wait()
		took := elapsed(func() {
			_, err := g.Take(t.Context(), nil, 200*4096)
			wantError(t, err, leaf.ErrExhausted)
		})
		if took != 0 {
			t.Errorf("failed after %v", took)
		}
		if took := elapsed(func() { take(t, g, 50*4096) }); took < 949*time.Millisecond || took > 951*time.Millisecond {
			t.Errorf("served after %v", took)
		}
		wg.Wait()
	})
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{MaxAhead: -1})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		gone, stop := context.WithCancel(t.Context())
		stop()
		if _, err := g.Next(gone); err != nil {
			t.Errorf("a call that need not wait looked at its context: %v", err)
		}
		dst := []leaf.Range{{Start: 1, End: 2}}
		got, err := g.Take(ctx, dst, 100*4096)
		wantError(t, err, context.Canceled)
		if len(got) != 1 || g.Stats().Waiting != 0 || g.queue.backlog != 0 {
			t.Errorf("got %v, %+v, backlog %d", got, g.Stats(), g.queue.backlog)
		}
		if took := elapsed(func() { next(t, g) }); took > time.Millisecond {
			t.Errorf("the next call took %v", took)
		}
	})
}
