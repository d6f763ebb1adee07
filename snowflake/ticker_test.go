package snowflake

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// The ticker reads the clock during traffic, and then stops.
func TestTheCoarseClockEnds(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var reads atomic.Int64
			begin := time.Now()
			clock := worker.NewClockFrom(time.Now, func() time.Duration {
				reads.Add(1)
				return time.Since(begin)
			})
			during := func(d time.Duration) int64 {
				before := reads.Load()
				time.Sleep(d)
				synctest.Wait()
				return reads.Load() - before
			}
			g := newHeld(t, Layout{leafLayout.Epoch, tick, 39, 4, 20}, &Options{Clock: clock})
			if n := during(time.Hour); n != 0 {
				t.Errorf("tick %v: %d beats before the first call", tick, n)
			}
			for range 3 {
				next(t, g)
				for range 100 {
					before := reads.Load()
					next(t, g)
					if n := reads.Load() - before; n != 0 {
						t.Fatalf("tick %v: a call read the clock", tick)
					}
					most := int64(11)
					if tick > finest {
						most = 2
					}
					if n := during(coarsest); n < 1 || n > most {
						t.Fatalf("tick %v: %d beats in %v of traffic", tick, n, coarsest)
					}
				}
				during(time.Second)
				if n := during(time.Hour); n != 0 {
					t.Errorf("tick %v: %d beats without traffic", tick, n)
				}
			}
			next(t, g)
			g.Seal(errDown)
			if n := during(time.Hour); n != 0 {
				t.Errorf("tick %v: %d beats without a lease", tick, n)
			}
			before := reads.Load()
			g.tick() // a turn that had begun
			if n := reads.Load() - before + during(time.Hour); n != 0 {
				t.Errorf("tick %v: %d beats after the last turn", tick, n)
			}
		})
	}
}
