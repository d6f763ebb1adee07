package snowflake

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// A batch reserves all of its slots below the gate, or fails. If it ends at the gate it shuts it. A
// batch of one tick skips the rest of the tick before, if it must.
func TestBatchesAtTheGate(t *testing.T) {
	const none = math.MaxUint64
	for _, c := range []struct {
		cursor, gate, n     uint64
		batch, inTick       uint64 // where each begins
		shutsBatch, shutsIn bool
	}{
		{0, 0, 1, none, none, false, false}, {0, 16, 1, 0, 0, false, false}, {0, 16, 8, 0, 0, false, false}, {0, 8, 8, 0, 0, true, true},
		{1, 16, 7, 1, 1, false, false}, {1, 16, 8, 1, 8, false, true}, {1, 16, 9, 1, none, false, false}, {1, 17, 8, 1, 8, false, false}, {1, 15, 8, 1, none, false, false},
		{7, 16, 1, 7, 7, false, false}, {7, 8, 1, 7, 7, true, true}, {7, 8, 2, none, none, false, false}, {8, 8, 1, none, none, false, false},
		{9, 8, 1, none, none, false, false}, {4, 6, 5, none, none, false, false}, {4, 6, 2, 4, 4, true, true}, {16, 8, 8, none, none, false, false},
	} {
		for name, want := range map[string]struct {
			from  uint64
			shuts bool
		}{"batch": {c.batch, c.shutsBatch}, "in a tick": {c.inTick, c.shutsIn}} {
			l := newLeaseCursor(Layout{time.UnixMilli(0), time.Millisecond, 20, 3, 3}, newFakeLease(1, 0, math.MaxInt64), 0, 0, 0)
			l.cursor.Store(c.cursor)
			l.gate.Store(c.gate)
			reserve := l.batch
			if name == "in a tick" {
				if c.n > 8 {
					continue // the caller refuses it
				}
				reserve = l.batchInTick
			}
			from, ok := reserve(c.n, c.gate)
			left, gate := c.cursor, c.gate
			if want.from != none {
				left = want.from + c.n
			}
			if want.shuts {
				gate = 0
			}
			if ok != (want.from != none) || ok && from != want.from || l.cursor.Load() != left || l.gate.Load() != gate {
				t.Errorf("%s of %d at %d below %d: from %d, %v, then at %d below %d", name, c.n, c.cursor, c.gate, from, ok, l.cursor.Load(), l.gate.Load())
			}
		}
	}
}

// The clock moves a cursor on to its tick, and never within one or back.
func TestPull(t *testing.T) {
	for _, c := range []struct {
		cursor   uint64
		now      int64
		seq      uint64
		want     uint64
		accounts bool
	}{
		{17, 2, 5, 17, false}, {17, 2, 0, 17, false}, {17, 1, 7, 17, false}, {17, 3, 5, 29, true}, {17, 3, 0, 24, true}, {16, 2, 7, 16, false}, {24, 2, 7, 24, false},
	} {
		l := newLeaseCursor(Layout{time.UnixMilli(0), time.Millisecond, 20, 3, 3}, newFakeLease(1, 0, math.MaxInt64), 1, 0, 0)
		l.raise(1, 100, 0)
		l.cursor.Store(c.cursor)
		l.pull(c.now, c.seq)
		if got := l.cursor.Load(); got != c.want || c.accounts && (l.issued != c.cursor-8 || l.last != c.cursor || l.base != c.want) {
			t.Errorf("%+v: at %d, with %d issued up to %d, counted to %d", c, got, l.issued, l.last, l.base)
		}
	}
}

// No call of either kind loses a slot that another one could have: on the fast way, on the slow one,
// and where a batch ends with the last slot that the clock allows.
func TestNoSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{RandomStart: 1})
		run := func(n int, want int64) {
			t.Helper()
			r, err := g.TakeContiguous(t.Context(), n)
			if err != nil || parts(t, g, r.Start).Sequence != want {
				t.Errorf("a run of %d begins at %d, %v, want %d", n, parts(t, g, r.Start).Sequence, err, want)
			}
		}
		run(1, 0) // waits for the first look at the clock
		if p := next(t, g); p.Sequence != 1 {
			t.Errorf("next is %d", p.Sequence)
		}
		run(10, 2)
		run(4084, 12) // the rest of the tick
		run(4096, 0)
		run(4095, 0)
		run(2, 0) // the next tick
		if p := next(t, g); p.Sequence != 2 {
			t.Errorf("next is %d", p.Sequence)
		}
	})
	for name, rest := range map[string]func(*Generator) error{
		"a batch": func(g *Generator) error { _, err := g.Take(t.Context(), nil, 4095); return err },
		"a run":   func(g *Generator) error { _, err := g.TakeContiguous(t.Context(), 4095); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newHeld(t, leafLayout, &Options{RandomStart: 1, MaxAhead: -1})
			for tick := range 5 {
				if p := next(t, g); p.Sequence != 0 {
					t.Errorf("%s: tick %d begins at %d", name, tick, p.Sequence)
				}
				if err := rest(g); err != nil {
					t.Errorf("%s: the rest of tick %d: %v", name, tick, err)
				}
			}
		})
	}
}

// A run that two leases would have to share fails.
func TestRunOfTwoLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, &Options{RandomStart: 2000, MaxAhead: -1})
		time.Sleep(500 * time.Microsecond)
		g.begin(newFakeLease(7, 0, nowMs()+1)) // the present tick, of which at least 2097 slots are left
		failed := make(chan error)
		go func() {
			r, err := g.TakeContiguous(t.Context(), 4096)
			if err == nil && r.Len() == 4096 { // the next lease begins at a random slot, one in 2000 times at 0
				err = leaf.ErrExhausted
			}
			failed <- err
		}()
		synctest.Wait()
		g.Seal(errDown)
		g.begin(newFakeLease(8, 0, nowMs()+1_000_000))
		wantError(t, <-failed, leaf.ErrExhausted)
	})
}

// Without a lease calls fail at once when it is gone for the wait, however often they come.
func TestNoLeaseForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, nil)
		time.Sleep(2 * DefaultWait)
		for i := range 5 {
			if took := elapsed(func() {
				_, err := g.Next(t.Context())
				wantError(t, err, leaf.ErrNoLease)
			}); took != 0 {
				t.Errorf("call %d took %v", i, took)
			}
			time.Sleep(time.Minute)
		}
		if st := g.Stats(); st.Refused != 5 || st.Waits != 0 || st.Waiting != 0 || !errors.Is(st.Why, errUnclaimed) || st.Held {
			t.Errorf("got %+v", st)
		}
		g.Seal(nil) // nothing was held
		if st := g.Stats(); !errors.Is(st.Why, errUnclaimed) {
			t.Errorf("got %+v", st)
		}
	})
}

// The figures follow the lease, the IDs and the clock.
func TestGeneratorStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, leafLayout, &Options{RandomStart: 1})
		until := nowMs() + 1_000_000
		g.begin(newFakeLease(7, 0, until))
		if st := g.Stats(); !st.Held || st.Worker != 7 || !st.Until.Equal(time.UnixMilli(until)) || st.Issued != 0 || !st.Last.IsZero() || st.Ahead != 0 || st.Why != nil {
			t.Errorf("before an ID: %+v", st)
		}
		take(t, g, 3*4096)
		ahead := 2 * time.Millisecond
		if st := g.Stats(); st.Issued != 3*4096 || st.Waits != 0 || !st.Last.Equal(time.Now().Add(ahead)) || st.Ahead != ahead {
			t.Errorf("after three ticks: %+v", st)
		}
		time.Sleep(time.Second)
		if st := g.Stats(); st.Ahead != 0 || st.Last.IsZero() || st.Refused != 0 {
			t.Errorf("later: %+v", st)
		}
		g.Seal(errDown)
		if st := g.Stats(); st.Held || !errors.Is(st.Why, errDown) || st.Issued != 3*4096 || st.Worker != 0 || !st.Until.IsZero() {
			t.Errorf("without a lease: %+v", st)
		}
		g.Seal(nil)
		g.begin(newFakeLease(8, 0, until))
		g.Seal(nil)
		if st := g.Stats(); st.Why == nil || errors.Is(st.Why, errDown) || st.Issued != 3*4096 {
			t.Errorf("after another lease: %+v", st)
		}
	})
}

// A caller who waits for a lease learns that the layout has no time left under it.
func TestLeaseAtTheEndOfTheLayout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := Layout{time.Now().Add(-15 * time.Millisecond), time.Millisecond, 4, 10, 12} // its last tick
		g := newGenerator(t, layout, nil)
		failed := make(chan error)
		go func() { _, err := g.Next(t.Context()); failed <- err }()
		time.Sleep(DefaultWait / 2)
		g.begin(newFakeLease(7, nowMs(), nowMs()+1000))
		wantError(t, <-failed, leaf.ErrOverflow)
	})
}

// The reason for no IDs is the lease where that allows no more than the clock, and else the clock.
func TestReasonsForNoIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			limit int64 // of the lease, from now
			want  error
		}{{0, leaf.ErrNoLease}, {1, leaf.ErrNoLease}, {2, leaf.ErrExhausted}} {
			g := newGenerator(t, leafLayout, &Options{MaxAhead: -1, Reject: true, RandomStart: 1})
			g.begin(newFakeLease(7, 0, nowMs()+c.limit))
			l := g.current.Load()
			l.cursor.Store(l.limit)
			if err := g.unavailable(nowMs()); !errors.Is(err, c.want) {
				t.Errorf("a lease for %d ms: %v, want %v", c.limit, err, c.want)
			}
		}
	})
}

// The generator asks the lease to grow once less than a second is left beyond the clock's reach.
func TestNeedAtItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reach := nowMs() + worker.DefaultMaxAhead.Milliseconds() + 1
		for left, want := range map[int64]int64{slack: 0, slack - 1: 1, slack + 1: 0} {
			l := newFakeLease(7, 0, reach+left)
			begin(t, leafLayout, nil, l)
			if n := l.calls.Load(); n != want {
				t.Errorf("with %d ms left: asked %d times", left, n)
			}
		}
	})
}

// Options and layouts at their bounds are accepted, and one off them refused.
func TestBounds(t *testing.T) {
	for _, r := range []Reserve{{Size: 1, Refill: 1}, {Size: 1, Refill: 99}, {}, {Size: math.MaxInt64, Interval: 1}} {
		if _, err := New(leafLayout, &Options{Reserve: r}); err != nil {
			t.Error(err)
		}
	}
	r := newReserve(Reserve{Size: 250, Refill: 99, Interval: time.Second})
	if r.least != 247 || r.size != 250 || r.interval != 1000 || r.due != math.MaxInt64 {
		t.Errorf("got %+v", r)
	}
	for _, c := range []struct {
		bits int
		tick time.Duration
		want int64
	}{{1, time.Millisecond, 2}, {41, time.Millisecond, 1 << 41}, {62, time.Millisecond, 1 << 62}, {63, time.Millisecond, math.MaxInt64}, {63, 2 * time.Millisecond, math.MaxInt64/2 + 1}} {
		l := Layout{time.UnixMilli(-2), c.tick, c.bits, 0, 0}
		if got := l.ticks(); got != c.want {
			t.Errorf("%d bits of %v: %d ticks, want %d", c.bits, c.tick, got, c.want)
		}
	}
	for _, c := range [][3]uint64{{1, 2, 3}, {math.MaxUint64, 0, math.MaxUint64}, {math.MaxUint64 - 1, 1, math.MaxUint64}, {math.MaxUint64, 1, math.MaxUint64}, {1 << 63, 1 << 63, math.MaxUint64}} {
		if got := satAdd(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d", c[0], c[1], got)
		}
	}
	for year, ok := range map[int]bool{0: false, 1: true, 9999: true, 10_000: false} {
		l := leafLayout
		l.Epoch = time.Date(year, 2, 1, 0, 0, 0, 0, time.UTC)
		if err := l.Check(); (err == nil) != ok {
			t.Errorf("an epoch in the year %d: %v", year, err)
		}
	}
	for name := range map[string]bool{"leaf": true, "uid": true, "uid-baidu": true, "js53": true} {
		if l, ok := Preset(name); !ok || l.Check() != nil {
			t.Errorf("%s: %v, %v", name, l, ok)
		}
	}
	if _, ok := Preset("none"); ok {
		t.Error("a preset without a name")
	}
}

// A batch of a caller whose time is short uses nothing where it cannot be complete, and a single ID
// may wait.
func TestDeadlineOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{MaxAhead: -1, RandomStart: 1})
		next(t, g)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		defer cancel()
		_, err := g.Take(ctx, nil, 6*4096)
		wantError(t, err, leaf.ErrExhausted)
		if p := next(t, g); p.Sequence != 1 {
			t.Errorf("next is %d", p.Sequence)
		}
		if got, err := g.Take(ctx, nil, 2*4096); err != nil || count(t, got) != 2*4096 {
			t.Errorf("what comes in time: %v, %v", got, err)
		}
	})
}

// If the rest of a tick is too short for a run, the slow way begins the run behind it.
func TestRunBehindAShortRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, leafLayout, &Options{RandomStart: 1})
		take(t, g, 4090)
		before := next(t, g)
		g.current.Load().gate.Store(0)
		r, err := g.TakeContiguous(t.Context(), 10)
		if p := parts(t, g, r.Start); err != nil || r.Len() != 10 || p.Sequence != 0 || p.Tick != before.Tick+1 {
			t.Errorf("%v from %+v after %+v, %v", r, p, before, err)
		}
	})
}

// A call needs no wait where its slots are below the limit and nobody waits before it.
func TestStocked(t *testing.T) {
	for _, c := range []struct {
		held             bool
		waiting          uint64
		cursor, limit, n uint64
		want             bool
	}{
		{true, 0, 10, 15, 5, true}, {true, 0, 10, 15, 6, false}, {true, 0, 10, 15, 4, true}, {true, 0, 15, 15, 1, false}, {true, 0, 16, 15, 1, false},
		{false, 0, 10, 15, 5, false}, {true, 1, 10, 15, 1, false},
	} {
		g := newGenerator(t, leafLayout, nil)
		g.held = c.held
		if c.waiting > 0 {
			g.queue.join(c.waiting)
		}
		l := g.current.Load()
		l.limit = c.limit
		l.cursor.Store(c.cursor)
		if got := g.stocked(c.n); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The clock allows no slot before the epoch, and the first tick at it.
func TestClockLimitAtTheEpoch(t *testing.T) {
	epoch := leafLayout.Epoch.UnixMilli()
	l := newLeaseCursor(leafLayout, newFakeLease(1, 0, math.MaxInt64), epoch, 0, 0)
	for ms, want := range map[int64]uint64{epoch - 1: 0, epoch: l.slot(1), epoch + 1: l.slot(2)} {
		if got := l.clockLimit(ms); got != want {
			t.Errorf("%d ms after the epoch: %d, want %d", ms-epoch, got, want)
		}
	}
}
