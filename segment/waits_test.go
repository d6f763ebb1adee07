package segment_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// A batch larger than the stock takes nothing off it while the store is down, also where its first
// look moves on to the next range.
func TestBatchWithoutAStoreTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		defer closeBuffer(t, b)
		for range 10 {
			next(t, b)
			synctest.Wait()
		}
		stock := b.Stats().Stock
		if stock == 0 {
			t.Fatal("no second range")
		}
		store.Set(drivertest.Fault{Before: errDown})
		for range 3 {
			_, err := b.Take(t.Context(), nil, int(stock)+1)
			wantError(t, err, leaf.ErrExhausted)
		}
		if id := next(t, b); id != 11 {
			t.Errorf("got %d, want 11", id)
		}
		store.Set(drivertest.Fault{})
	})
}

// A loan that others came before waits as long for the next grant as for the first.
func TestLoanWaitsForTheNextGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Latency: 700 * time.Millisecond})
		b := segment.NewBuffer(store, "order", nil)
		var wg sync.WaitGroup
		wg.Go(func() { // gets the first grant: runs go first
			if r, err := b.TakeContiguous(t.Context(), 10); err != nil || r.Start != 1 {
				t.Errorf("got %v, %v", r, err)
			}
		})
		synctest.Wait()
		if g, err := b.Advance(t.Context(), 10, ""); err != nil || g.Range != (leaf.Range{Start: 11, End: 21}) {
			t.Errorf("got %+v, %v", g, err)
		}
		wg.Wait()
		store.Set(drivertest.Fault{})
		_ = b.Close(t.Context())
	})
}

// An answer that no wait can change ends the calls to the store until a caller comes.
func TestNoCallsAfterTheEnd(t *testing.T) {
	for name, end := range map[string]error{"overflow": leaf.ErrOverflow, "unfit": leaf.ErrUnsupported} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 10)
			b := segment.NewBuffer(store, "order", nil)
			next(t, b)
			synctest.Wait()
			store.Set(drivertest.Fault{Before: fmt.Errorf("%w: x", end)})
			for range 20 {
				_, _ = b.Next(t.Context())
			}
			time.Sleep(time.Minute)
			before := store.Calls(drivertest.OpAdvance)
			time.Sleep(time.Hour)
			if n := store.Calls(drivertest.OpAdvance) - before; n != 0 || b.Stats().Refilling {
				t.Errorf("%s: %d calls in an hour", name, n)
			}
			_, err := b.Next(t.Context())
			wantError(t, err, end)
			if store.Calls(drivertest.OpAdvance) == before {
				t.Errorf("%s: a caller does not make the buffer ask again", name)
			}
			store.Set(drivertest.Fault{})
			closeBuffer(t, b)
		})
	}
}

// The observer sees the beginning and the end of each call to the store, and of the give-back.
func TestObserverOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{OnCall: func(ctx context.Context, c segment.Call) (context.Context, func(int64, error)) {
			log = append(log, fmt.Sprint(c))
			return ctx, func(n int64, err error) { log = append(log, fmt.Sprint(n, err)) }
		}})
		next(t, b)
		synctest.Wait()
		log = nil
		store.Plan(drivertest.Only(drivertest.OpReturn, drivertest.Fault{Before: errDown}))
		wantError(t, b.Close(t.Context()), errDown)
		if len(log) != 2 || log[0] != "{order 0 true}" || log[1] != "0 store is down" {
			t.Errorf("told of %q", log)
		}
	})
}

// With the policy Leaf, ranges that an operator dropped are replaced before a caller needs it.
func TestDroppedRangesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		defer closeBuffer(t, b)
		b.DropBelow(0)
		synctest.Wait()
		if n := store.Calls(drivertest.OpAdvance); n != 0 {
			t.Errorf("%d calls before the first use", n)
		}
		for range 5 {
			next(t, b)
			synctest.Wait()
		}
		if n := len(b.Stats().Segments); n != 2 {
			t.Fatalf("%d ranges", n)
		}
		b.DropBelow(15)
		synctest.Wait()
		if st := b.Stats(); len(st.Segments) != 2 || st.Segments[0].Next != 15 {
			t.Errorf("got %+v", st.Segments)
		}
	})
}

// The stock is filled up in time for a program that takes all its IDs by a cursor.
func TestCursorFillsTheStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		store.Set(drivertest.Fault{Latency: 50 * time.Millisecond})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		c := b.Cursor(20)
		for range 5000 {
			nextOf(t, c)
			time.Sleep(time.Millisecond)
		}
		if st := b.Stats(); st.Waits != 1 {
			t.Errorf("%d calls waited for the store", st.Waits)
		}
	})
}

// A lift is no grant: a buffer takes up each grant once.
func TestLiftIsNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tickets{Faulty: newStore(t, 1, 1)}
		b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 50_000})
		defer b.Close(t.Context())
		for range 5 {
			next(t, b)
			synctest.Wait()
		}
		loseWrites(t, store.Faulty, 2)
		for range 5 {
			next(t, b)
			synctest.Wait()
		}
		if st := b.Stats(); st.Refills != st.Issued+st.Stock || len(store.lifts) != 1 {
			t.Errorf("%d grants of one ID each for %d IDs", st.Refills, st.Issued+st.Stock)
		}
	})
}

// Tags of the listing leave the places of unknown ones free.
func TestListedTagsTakeNoPlaceOfUnknownOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New().Store()
		for i := range 2 {
			create(t, inner, fmt.Sprint("no-", i), 1, 10)
		}
		set := segment.NewSet(&frozen{inner}, &segment.SetOptions{MaxCalls: 4})
		defer set.Close(t.Context())
		<-set.Ready()
		for i := range 2 {
			go set.Next(t.Context(), fmt.Sprint("no-", i)) // in the listing, and never answered
		}
		synctest.Wait()
		create(t, inner, "new", 1, 10)
		begin := time.Now()
		if id, err := set.Next(t.Context(), "new"); err != nil || id != 1 || time.Since(begin) > 0 {
			t.Errorf("a new tag: %d, %v after %v", id, err, time.Since(begin))
		}
	})
}

// A caller of several waits for the store as the options say, and not for a call of its own.
func TestWaitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Mute: true})
		b := segment.NewBuffer(store, "order", &segment.Options{Wait: 300 * time.Millisecond, CallTimeout: time.Hour})
		var wg sync.WaitGroup
		for i, call := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := b.Next(ctx); return err },
			func(ctx context.Context) error { _, err := b.Take(ctx, nil, 5); return err },
			func(ctx context.Context) error { _, err := b.TakeContiguous(ctx, 5); return err },
			func(ctx context.Context) error { _, err := b.Advance(ctx, 5, ""); return err },
		} {
			wg.Go(func() {
				begin := time.Now()
				if err := call(t.Context()); !errors.Is(err, leaf.ErrExhausted) || time.Since(begin) != 300*time.Millisecond {
					t.Errorf("call %d: %v after %v", i, err, time.Since(begin))
				}
			})
		}
		wg.Wait()
		if st := b.Stats(); st.Waits != 4 || st.Exhausted != 4 || st.Calls != 0 || !st.Refilling {
			t.Errorf("got %+v", st)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := b.Next(ctx)
		wantError(t, err, context.Canceled)
		if st := b.Stats(); st.Waits != 4 || st.Exhausted != 4 {
			t.Errorf("a caller who cannot wait counts: %+v", st)
		}
		ended, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel()
		wantError(t, b.Close(ended), nil)
	})
}

// A buffer that stops without an ID of a grant leaves the mark of before the grant.
func TestStopWithoutAnID(t *testing.T) {
	memory := notes{"order": {"": {High: 500}}}
	b := segment.NewBuffer(newStore(t, 1000, 10), "order", &segment.Options{Memory: memory})
	if err := b.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeBuffer(t, b)
	if high := memory["order"][""].High; high != 500 {
		t.Errorf("%d is remembered, want 500", high)
	}
}
