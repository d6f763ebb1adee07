package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A store that fails for less than a caller waits is not an error.
func TestShortOutage(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 10)
			b := segment.NewBuffer(store, "order", nil)
			defer closeBuffer(t, b)
			store.Set(drivertest.Fault{Before: errDown})
			time.AfterFunc(850*time.Millisecond, func() { store.Set(drivertest.Fault{}) })
			next(t, b)
		})
	}
}

// A dead store makes the first callers wait and later ones fail at once; it is noticed when it
// comes back.
func TestDeadStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)

		next(t, b)
		store.Set(drivertest.Fault{Before: errDown})
		for range 9 { // the rest of the stock
			next(t, b)
		}
		drain(t, b)
		start := time.Now()
		_, err := b.Next(t.Context())
		wantError(t, err, leaf.ErrExhausted)
		wantError(t, err, errDown)
		if waited := time.Since(start); waited != 0 {
			t.Fatalf("waited %v for a store known to be dead", waited)
		}
		store.Set(drivertest.Fault{})
		time.Sleep(time.Second) // the longest pause between two attempts
		synctest.Wait()
		next(t, b)
	})
}

// drain takes IDs until a call fails.
func drain(t testing.TB, b *segment.Buffer) (n int64) {
	t.Helper()
	for {
		if _, err := b.Next(t.Context()); err != nil {
			wantError(t, err, leaf.ErrExhausted)
			return n
		}
		n++
	}
}

// During an outage a failed batch leaves the stock to single calls.
func TestBatchLeavesTheStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		b := segment.NewBuffer(store, "order", &segment.Options{MaxStock: 10_000})
		defer closeBuffer(t, b)
		if _, err := b.Take(t.Context(), nil, 200); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		store.Set(drivertest.Fault{Before: errDown})
		if _, err := b.Take(t.Context(), nil, 300); err != nil { // finds out
			t.Fatal(err)
		}
		synctest.Wait()
		left := b.Stats().Stock
		for range 20 {
			_, err := b.Take(t.Context(), nil, 9000)
			wantError(t, err, leaf.ErrExhausted)
		}
		if got := b.Stats().Stock; got != left || left == 0 {
			t.Fatalf("%d IDs left of %d", got, left)
		}
		if _, err := b.Take(t.Context(), nil, int(left)); err != nil {
			t.Fatal(err)
		}
	})
}

// That holds too when the batch waits while the store is found to be beyond hope.
func TestBatchLeavesTheStockOnRefusal(t *testing.T) {
	for _, fault := range []error{errDown, leaf.ErrOverflow} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 1000)
			b := segment.NewBuffer(store, "order", &segment.Options{MaxStock: 10_000})
			defer closeBuffer(t, b)
			next(t, b)
			synctest.Wait()
			store.Set(drivertest.Fault{Before: fault, Latency: 10 * time.Millisecond})
			defer store.Set(drivertest.Fault{})
			for range 110 { // a tenth is used: a call to the store
				next(t, b)
			}
			time.Sleep(500 * time.Millisecond)
			left := b.Stats().Stock
			_, err := b.Take(t.Context(), nil, 9000)
			if err == nil || b.Stats().Stock != left || left == 0 {
				t.Errorf("%v: %d IDs left of %d", err, b.Stats().Stock, left)
			}
			next(t, b)
		})
	}
}

// After an outage the stock is topped up at once: the next one may come soon.
func TestSecondOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		consume(t, b, 100, 10*time.Minute)
		for range 3 {
			store.Set(drivertest.Fault{Before: errDown})
			if errs := consume(t, b, 100, 5*time.Minute); errs > 0 {
				t.Fatalf("%d calls failed", errs)
			}
			store.Set(drivertest.Fault{})
			if errs := consume(t, b, 100, 5*time.Second); errs > 0 || b.Stats().Lasts < 8*time.Minute {
				t.Fatalf("%d calls failed, the stock lasts %v", errs, b.Stats().Lasts)
			}
		}
	})
}

// A failure of long ago says nothing about how long the store has been failing now.
func TestOldFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		_, err := b.Next(t.Context())
		wantError(t, err, leaf.ErrExhausted)
		time.Sleep(time.Hour)
		store.Next(drivertest.OpAdvance, drivertest.Fault{Before: errDown})
		next(t, b)
	})
}

// Each lost reply costs a step, not the whole target.
func TestLostRepliesCostLittle(t *testing.T) {
	testserver.Long(t)
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		b := segment.NewBuffer(store, "order", nil)
		defer b.Close(t.Context())
		if errs := consume(t, b, 10_000, time.Minute); errs != 0 {
			t.Fatal(errs)
		}
		before := store.Granted("order")
		store.Set(drivertest.Fault{After: errDown})
		consume(t, b, 10_000, 5*time.Minute)
		after := store.Granted("order")
		if lost := after[len(after)-1].End - before[len(before)-1].End; lost > 5_000_000 {
			t.Errorf("%d IDs lost in %d calls", lost, len(after)-len(before))
		}
	})
}

// No caller waits for a store that can never serve.
func TestUnfitStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: leaf.ErrUnsupported})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		start := time.Now()
		_, err := b.Next(t.Context())
		wantError(t, err, leaf.ErrUnsupported)
		if waited := time.Since(start); waited > 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// A store that hangs costs a caller no more than Wait.
func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Mute: true})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		for range 5 {
			start := time.Now()
			_, err := b.Next(t.Context())
			wantError(t, err, leaf.ErrExhausted)
			if waited := time.Since(start); waited > time.Second {
				t.Fatalf("waited %v", waited)
			}
		}
		store.Set(drivertest.Fault{})
		time.Sleep(10 * time.Second)
		next(t, b)
	})
}

// A failing store is not hammered (Java Leaf made 510 calls in 22 ms). Without a waiting caller the
// set does not ask for a tag that never had IDs.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		for range 10_000 {
			_, err := b.Next(t.Context())
			wantError(t, err, leaf.ErrExhausted)
			time.Sleep(time.Millisecond)
		}
		if n := store.Calls(drivertest.OpAdvance); n < 5 || n > 100 {
			t.Fatalf("%d calls to a dead store in 11 s", n)
		}
		time.Sleep(2 * time.Second)
		before := store.Calls(drivertest.OpAdvance)
		time.Sleep(time.Hour)
		if n := store.Calls(drivertest.OpAdvance) - before; n != 0 {
			t.Fatalf("%d calls for a tag that no caller wants", n)
		}
	})
}

// A write whose reply was lost costs IDs, never a duplicate.
func TestErrorAfterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Plan(func(c drivertest.Call) drivertest.Fault {
			if c.Seq%2 == 1 {
				return drivertest.Fault{After: errDown}
			}
			return drivertest.Fault{}
		})
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		defer b.Close(t.Context()) // the rest is lost
		var ranges drivertest.Ranges
		for range 5000 {
			id := next(t, b)
			ranges.Add(leaf.Range{Start: id, End: id + 1})
		}
		if err := ranges.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
