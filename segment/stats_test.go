package segment_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// Every granted ID is issued, in stock, lost or given back.
func wantAccounted(t testing.TB, store *drivertest.Faulty, b *segment.Buffer) {
	t.Helper()
	var granted int64
	for _, r := range store.Granted("order") {
		granted += r.Len()
	}
	if s := b.Stats(); s.Issued+s.Stock+s.Lost+s.Returned != granted {
		t.Errorf("%d granted, and %d issued, %d in stock, %d lost, %d given back", granted, s.Issued, s.Stock, s.Lost, s.Returned)
	}
}

func TestStatsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed, succeeded atomic.Int64
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{OnCall: func(ctx context.Context, c segment.Call) (context.Context, func(int64, error)) {
			begun := time.Now()
			return ctx, func(granted int64, err error) {
				if took := time.Since(begun); took != 100*time.Millisecond {
					t.Errorf("a call took %v", took)
				}
				if err != nil {
					failed.Add(1)
				} else if succeeded.Add(1); granted != 10 || c.Tag != "order" {
					t.Errorf("%+v granted %d", c, granted)
				}
			}
		}})
		store.Set(drivertest.Fault{Latency: 100 * time.Millisecond})
		next(t, b)
		synctest.Wait()
		store.Set(drivertest.Fault{Latency: 100 * time.Millisecond, Before: errors.New("down")})
		for range 9 {
			next(t, b)
		}
		if _, err := b.Next(t.Context()); err == nil {
			t.Fatal("an ID from a store that is down")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Next(ended); err == nil {
			t.Fatal("an ID from a store that is down")
		}
		s := b.Stats()
		if s.Waits != 2 || s.Exhausted < 1 || s.Exhausted > 2 {
			t.Errorf("%d waits, %d exhausted; the first and the eleventh call waited, and the eleventh got nothing", s.Waits, s.Exhausted)
		}
		if s.Calls != failed.Load()+succeeded.Load() || s.Failures != failed.Load() || s.Refills != succeeded.Load() || failed.Load() == 0 {
			t.Errorf("%d calls, %d failures, %d refills; told of %d failures and %d successes", s.Calls, s.Failures, s.Refills, failed.Load(), succeeded.Load())
		}
		if want := time.Duration(s.Calls) * 100 * time.Millisecond; s.CallTime != want {
			t.Errorf("the calls took %v, want %v", s.CallTime, want)
		}
		store.Set(drivertest.Fault{})
		closeBuffer(t, b)
		wantAccounted(t, store, b)
	})
}

func TestStatsOfRegressionAndStop(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 1000)
			b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf, RegressionJump: 50_000})
			take := func(n int) {
				t.Helper()
				if _, err := b.Take(t.Context(), nil, n); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			take(900)
			loseWrites(t, store, 500)
			take(1500)
			take(1500)
			if s := b.Stats(); s.Lost < 50_000 || s.Regressions != 1 {
				t.Errorf("%d lost by %d regressions", s.Lost, s.Regressions)
			}
			wantAccounted(t, store, b)
			before := b.Stats()
			if refuse {
				store.Plan(drivertest.Only(drivertest.OpReturn, drivertest.Fault{Before: errors.New("down")}))
			}
			_ = b.Close(t.Context()) // an error where the store refuses
			after := b.Stats()
			if refuse != (after.Returned == 0) || after.Lost+after.Returned != before.Lost+before.Stock {
				t.Errorf("refused: %v; given back %d, lost %d; before: lost %d, in stock %d", refuse, after.Returned, after.Lost, before.Lost, before.Stock)
			}
			wantAccounted(t, store, b)
		})
	}
}
