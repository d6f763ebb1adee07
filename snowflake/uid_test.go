package snowflake

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
)

// uidLayout is that of the preset uid with an older epoch.
var uidLayout = Layout{leafLayout.Epoch, time.Second, 31, 19, 13}

// cached is what users of uid-generator know as its cached mode.
func cached() *Options {
	return &Options{MaxAhead: time.Minute, Wait: 3 * time.Second, Reserve: Reserve{Size: 8192 << 3}}
}

// A burst gets the IDs of 60 to 61 seconds at once. After that each second has 8192, and callers
// wait for them without a refusal.
func TestCachedBurst(t *testing.T) {
	for _, callers := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(300 * time.Millisecond) // not at the beginning of a second
				g := newHeld(t, uidLayout, cached())
				began := time.Now()
				ctx, cancel := context.WithDeadline(t.Context(), began.Add(20*time.Second))
				defer cancel()
				var atOnce, later atomic.Int64
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for ctx.Err() == nil {
							id, err := g.Next(ctx)
							if err != nil && ctx.Err() == nil {
								t.Error(err)
							}
							if err != nil {
								return
							}
							if p := parts(t, g, id); time.Until(p.Time) > time.Minute {
								t.Errorf("at %v: %+v", time.Now(), p)
							}
							if time.Since(began) < 20*time.Millisecond {
								atOnce.Add(1)
							} else {
								later.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if n := atOnce.Load(); n <= 60*8192 || n > 61*8192 {
					t.Errorf("%d at once, want what 60 to 61 seconds hold", n)
				}
				// A caller at the end of the available slots may lose one.
				if n := later.Load(); n > 20*8192 || n < 20*(8192-int64(callers-1)) {
					t.Errorf("%d in the 20 s after that, want 8192 a second", n)
				}
			})
		})
	}
}

// With Reject, calls are refused when what may be borrowed is used up, and not because the
// lease has yet to grow.
func TestReject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := cached()
		opts.Reject = true
		l := newFakeLease(7, 0, nowMs())
		g := begin(t, uidLayout, opts, l)
		defer keep(l, 5*time.Millisecond)()
		took := elapsed(func() { take(t, g, 60*8192) })
		if took > 20*time.Millisecond {
			t.Errorf("60 seconds' worth took %v", took)
		}
		took = elapsed(func() {
			_, err := g.Take(t.Context(), nil, 8193)
			wantError(t, err, leaf.ErrExhausted, "8192")
		})
		if took != 0 {
			t.Errorf("refused after %v", took)
		}
		time.Sleep(time.Second)
		take(t, g, 8192)
	})
}

// Without borrowing, a second has its own sequence numbers only; the next one starts again.
func TestDefaultMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, uidLayout, &Options{MaxAhead: -1, Wait: 3 * time.Second, RandomStart: 1})
		took := elapsed(func() {
			for range 3 * 8192 {
				if p := next(t, g); !p.Time.Equal(time.Now().Truncate(time.Second)) {
					t.Fatalf("at %v: %+v", time.Now(), p)
				}
			}
		})
		if took != 2*time.Second {
			t.Errorf("three seconds' worth took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		took = elapsed(func() {
			_, err := g.Next(ctx)
			wantError(t, err, context.DeadlineExceeded)
		})
		if took != 100*time.Millisecond {
			t.Errorf("a caller was held for %v beyond its context", took)
		}
	})
}

// A batch whose caller leaves before it can be had takes nothing from others.
func TestBatchWithoutHope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, uidLayout, &Options{MaxAhead: -1, Wait: 3 * time.Second, RandomStart: 1})
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err := g.Take(ctx, nil, 10_000)
			wantError(t, err, leaf.ErrExhausted)
			cancel()
		}
		if took := elapsed(func() { take(t, g, 8192) }); took != 0 {
			t.Errorf("a second's worth took %v: refused batches use up IDs", took)
		}
	})
}

// At low traffic an ID has the second of its issue, for an hour or, in the lab, a whole day, also
// after a burst has borrowed from the future.
func TestCachedFollowsTheClock(t *testing.T) {
	hours := 1
	if os.Getenv("LEAF_LAB") != "" {
		hours = 24
	}
	synctest.Test(t, func(t *testing.T) {
		g := newHeld(t, uidLayout, cached())
		take(t, g, 30*8192)
		borrowed := time.Now().Add(30 * time.Second)
		var behind, ahead time.Duration
		for range hours * 60 * 60 * 10 {
			time.Sleep(100 * time.Millisecond)
			for range 10 {
				off := time.Since(next(t, g).Time)
				if time.Now().Before(borrowed) {
					off = min(off, 0)
				}
				behind, ahead = max(behind, off), max(ahead, -off)
			}
		}
		if behind >= time.Second+coarsest || ahead > 30*time.Second {
			t.Errorf("at most %v behind the clock and %v ahead of it", behind, ahead)
		}
		if st := g.Stats(); st.Ahead != 0 {
			t.Errorf("at the end: %+v", st)
		}
	})
}
