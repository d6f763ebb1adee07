package segment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

func takeContiguous(t testing.TB, b *segment.Buffer, n int) leaf.Range {
	t.Helper()
	r, err := b.TakeContiguous(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != int64(n) {
		t.Fatalf("got %v, want %d IDs", r, n)
	}
	return r
}

func TestTakeContiguous(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 20), "order", nil)
	defer closeBuffer(t, b)
	next(t, b)
	for _, want := range []leaf.Range{{Start: 2, End: 5}, {Start: 5, End: 1005}, {Start: 1005, End: 1_001_005}} {
		if got := takeContiguous(t, b, int(want.Len())); got != want {
			t.Fatalf("got %v, want %v: alone on the tag nothing is lost", got, want)
		}
	}
	if got := next(t, b); got != 1_001_005 {
		t.Fatalf("got %d after that", got)
	}
}

func TestTakeContiguousRefusesBadCounts(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 20), "order", &segment.Options{MaxStock: 1000})
	defer closeBuffer(t, b)
	for _, n := range []int{0, -1, 1001} {
		_, err := b.TakeContiguous(t.Context(), n)
		wantError(t, err, leaf.ErrInvalid)
	}
	_, err := segment.NewBuffer(newStore(t, 1, 10), "nope", nil).TakeContiguous(t.Context(), 3)
	wantError(t, err, leaf.ErrUnknownTag)
	if got := takeContiguous(t, b, 1000); got.Start != 1 {
		t.Fatalf("refused calls consumed IDs: got %v", got)
	}
	takeContiguous(t, b, 1000)
}

// With other servers on the tag, a run skips the rest below it, and IDs only rise.
func TestTakeContiguousBesideOthers(t *testing.T) {
	store := newStore(t, 1, 10)
	b := segment.NewBuffer(store, "order", nil)
	defer b.Close(t.Context()) // it cannot give back what another server's grant follows
	last := next(t, b)
	for range 20 {
		advance(t, store, 7)
		r := takeContiguous(t, b, 100)
		if r.Start <= last {
			t.Fatalf("%v after %d", r, last)
		}
		if last = next(t, b); last < r.End {
			t.Fatalf("%d after %v", last, r)
		}
	}
}

func TestTakeContiguousOfASmallStock(t *testing.T) {
	store := newStore(t, 1, 10)
	b := segment.NewBuffer(store, "order", &segment.Options{MaxStock: 100})
	defer b.Close(t.Context()) // it cannot give back what another server's grant follows
	for range 20 {
		next(t, b)
		advance(t, store, 1)
		takeContiguous(t, b, 100)
	}
}

// A run gets the grant before waiting callers of single IDs.
func TestTakeContiguousBesideWaitingCallers(t *testing.T) {
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 10)
			b := segment.NewBuffer(slow{store}, "order", &segment.Options{MaxStock: 100})
			defer closeBuffer(t, b)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					for ctx.Err() == nil {
						_, _ = b.Next(ctx)
					}
				})
			}
			synctest.Wait() // the buffer requests a step
			takeContiguous(t, b, 100)
			if calls := store.Calls(drivertest.OpAdvance); calls > 3 {
				t.Errorf("the store was called %d times: for a step, the run, and what came after it at most", calls)
			}
			cancel()
			wg.Wait()
		})
	}
}

// slow gives callers time to see each grant.
type slow struct{ segment.Store }

func (s slow) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	time.Sleep(time.Millisecond)
	return s.Store.Advance(ctx, tag, n)
}

func TestTakeContiguousOfSmallUnits(t *testing.T) {
	alone := segment.NewBuffer(ones{newStore(t, 1, 10)}, "order", nil)
	defer closeBuffer(t, alone)
	takeContiguous(t, alone, 30) // they follow one another

	store := newStore(t, 1, 10)
	gaps := segment.NewBuffer(gappy{ones{store}}, "order", nil)
	defer closeBuffer(t, gaps)
	_, err := gaps.TakeContiguous(t.Context(), 30)
	wantError(t, err, leaf.ErrNotContiguous)
	takeContiguous(t, gaps, 1)
}

// gappy deals in single IDs that do not follow one another.
type gappy struct{ ones }

func (g gappy) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if _, err := g.ones.Advance(ctx, tag, n); err != nil {
		return segment.Grant{}, err
	}
	return g.ones.Advance(ctx, tag, n)
}

func TestTakeContiguousWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		b := segment.NewBuffer(store, "order", nil)
		next(t, b)
		synctest.Wait()
		store.Set(drivertest.Fault{Before: errDown})
		_, err := b.TakeContiguous(t.Context(), 1000)
		wantError(t, err, leaf.ErrExhausted)
		if got := next(t, b); got != 2 {
			t.Fatalf("a run that could not be had consumed IDs: got %d", got)
		}
		store.Set(drivertest.Fault{})
		closeBuffer(t, b)
		_, err = b.TakeContiguous(t.Context(), 1)
		wantError(t, err, leaf.ErrClosed)
	})
}

// Runs and single IDs never overlap and rise for every caller, and the buffer gives back only
// unissued IDs.
func TestTakeContiguousUnderLoad(t *testing.T) {
	store := newStore(t, 1, 10)
	b := segment.NewBuffer(store, "order", &segment.Options{Wait: time.Minute}) // a busy machine
	var ranges drivertest.Ranges
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			last := int64(-1)
			for i := range 500 {
				r, err := takeSome(t.Context(), b, g, i)
				if err != nil || r.Start <= last {
					t.Errorf("got %v after %d: %v", r, last, err)
					return
				}
				last = r.End - 1
				ranges.Add(r)
			}
		})
	}
	wg.Wait()
	closeBuffer(t, b)
	ranges.Add(advance(t, store, 1_000_000))
	if err := ranges.Check(); err != nil {
		t.Fatal(err)
	}
}

func takeSome(ctx context.Context, b *segment.Buffer, caller, i int) (leaf.Range, error) {
	if caller%2 == 0 {
		id, err := b.Next(ctx)
		return leaf.Range{Start: id, End: id + 1}, err
	}
	n := 1 + (i*37+caller)%400
	r, err := b.TakeContiguous(ctx, n)
	if err == nil && r.Len() != int64(n) {
		err = errors.New("not as many as were asked for")
	}
	return r, err
}
