package segment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// After a clean stop of the only node the next ID follows the last one.
func TestCloseGivesBack(t *testing.T) {
	store := newStore(t, 1, 1000)
	want := int64(1)
	for range 5 {
		b := segment.NewBuffer(store, "order", nil)
		for range 700 {
			if got := next(t, b); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			want++
		}
		closeBuffer(t, b)
		_, err := b.Next(t.Context())
		wantError(t, err, leaf.ErrClosed)
		_, err = b.Take(t.Context(), nil, 10)
		wantError(t, err, leaf.ErrClosed)
		closeBuffer(t, b)
	}
}

func TestCloseUnused(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 10), "order", nil)
	closeBuffer(t, b)
	_, err := b.Next(t.Context())
	wantError(t, err, leaf.ErrClosed)
}

// Close under load: what callers got and what went back never overlap.
func TestCloseUnderLoad(t *testing.T) {
	for range 200 {
		store := newStore(t, 0, 50)
		var ranges drivertest.Ranges
		b := segment.NewBuffer(store, "order", nil)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for {
					got, err := b.Take(t.Context(), nil, 1+g)
					if err != nil {
						return
					}
					ranges.Add(got...)
				}
			})
		}
		for ranges.Count() < 2000 {
			time.Sleep(50 * time.Microsecond)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		after, err := store.Advance(t.Context(), "order", 1)
		if err != nil {
			t.Fatal(err)
		}
		ranges.Add(after.Range)
		if err := ranges.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Close waits for the call in flight, so that nothing is lost.
func TestCloseWaitsForRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		opts := &segment.Options{Policy: segment.Leaf}
		b := segment.NewBuffer(store, "order", opts)
		next(t, b)
		next(t, b)
		store.Set(drivertest.Fault{Latency: time.Second})
		next(t, b) // starts the prefetch
		synctest.Wait()
		closeBuffer(t, b)
		if after := advance(t, store, 1); after.Start != 4 {
			t.Fatalf("after 1, 2 and 3 the counter stands at %d", after.Start)
		}
	})
}

func advance(t testing.TB, store segment.Store, n int64) leaf.Range {
	t.Helper()
	grant, err := store.Advance(t.Context(), "order", n)
	if err != nil {
		t.Fatal(err)
	}
	return grant.Range
}

// A grant that comes after the buffer was sealed is dropped, and then nothing is
// given back.
func TestCloseDropsLateGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t, 1, 10)
		store := &stubborn{Faulty: inner}
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		next(t, b)
		next(t, b)
		store.latency = time.Second
		next(t, b) // starts the prefetch
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		_, err := b.Next(t.Context())
		wantError(t, err, leaf.ErrClosed)
		if n := inner.Calls(drivertest.OpReturn); n != 0 {
			t.Fatalf("%d give-backs with a call in flight", n)
		}
		if after := advance(t, inner, 1); after.Start != 21 {
			t.Fatalf("the counter stands at %d, want 21", after.Start)
		}
	})
}

// stubborn answers late and ignores the context.
type stubborn struct {
	*drivertest.Faulty
	latency time.Duration
}

func (s *stubborn) Advance(_ context.Context, tag string, n int64) (segment.Grant, error) {
	time.Sleep(s.latency)
	return s.Faulty.Advance(context.Background(), tag, n)
}

// The counterexample that rule R1 comes from. Two nodes hold ranges that do not
// touch; only the last run may go back, and only once.
func TestOnlyTheLastRunGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		next(t, b) // [1, 11)
		if _, err := store.Advance(t.Context(), "order", 5); err != nil {
			t.Fatal(err) // another node: [11, 16)
		}
		for range 3 {
			next(t, b)
		}
		synctest.Wait() // the prefetch: [16, 26)
		closeBuffer(t, b)
		returned := store.Returned("order")
		if len(returned) != 1 || returned[0] != (leaf.Range{Start: 16, End: 26}) {
			t.Fatalf("returned %v, want [16, 26) only", returned)
		}
	})
}

// Runs that touch go back together only where one server granted both.
func TestRunsOfAnotherServerStay(t *testing.T) {
	for name, servers := range map[string][2]string{"the same": {"", ""}, "another": {"", "1"}} {
		synctest.Test(t, func(t *testing.T) {
			inner := newStore(t, 1, 10)
			store := &renamed{inner, servers[0]}
			b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
			next(t, b) // [1, 11)
			store.server = servers[1]
			next(t, b)
			next(t, b) // starts the prefetch
			synctest.Wait()
			closeBuffer(t, b)
			want := leaf.Range{Start: 4, End: 21}
			if servers[0] != servers[1] {
				want.Start = 11
			}
			if returned := inner.Returned("order"); len(returned) != 1 || returned[0] != want {
				t.Errorf("%s: returned %v, want %v only", name, returned, want)
			}
		})
	}
}

// renamed says which server answered.
type renamed struct {
	*drivertest.Faulty
	server string
}

func (s *renamed) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := s.Faulty.Advance(ctx, tag, n)
	grant.Server = s.server
	return grant, err
}

// A give-back whose reply is lost is not repeated, and costs nothing but IDs.
func TestGiveBackIsSentOnce(t *testing.T) {
	for _, fault := range []drivertest.Fault{{Before: errDown}, {After: errDown}} {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		next(t, b)
		store.Next(drivertest.OpReturn, fault, drivertest.Fault{})
		wantError(t, b.Close(t.Context()), errDown)
		if n := store.Calls(drivertest.OpReturn); n != 1 {
			t.Fatalf("%d give-backs", n)
		}
	}
}

// A waiting caller gets the error at once.
func TestCloseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		b := segment.NewBuffer(store, "order", nil)
		done := make(chan error)
		go func() {
			_, err := b.Next(t.Context())
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		closeBuffer(t, b)
		wantError(t, <-done, leaf.ErrClosed)
		if waited := time.Since(start); waited > 0 {
			t.Fatalf("told after %v", waited)
		}
	})
}

// The error of a set that cannot give anything back names some tags, not all of a million.
func TestCloseErrorIsShort(t *testing.T) {
	store := newStore(t, 1, 10)
	set := segment.NewSet(store, nil)
	for i := range 1000 {
		tag := fmt.Sprint("tag-", i)
		create(t, store, tag, 1, 10)
		if _, err := set.Next(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	store.Set(drivertest.Fault{Before: errDown})
	err := set.Close(t.Context())
	wantError(t, err, errDown)
	if text := err.Error(); len(text) > 4000 || !strings.HasSuffix(text, "and 990 tags more") {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}
