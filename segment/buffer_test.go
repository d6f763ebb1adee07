package segment_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

var errDown = errors.New("store is down")

// newStore returns a store with one tag behind a wrapper that can fail.
func newStore(t testing.TB, maxID, step int64) *drivertest.Faulty {
	t.Helper()
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: maxID, Step: step}); err != nil {
		t.Fatal(err)
	}
	return &drivertest.Faulty{Store: store}
}

func next(t testing.TB, g *segment.Buffer) int64 {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func closeBuffer(t testing.TB, b *segment.Buffer) {
	t.Helper()
	if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func TestNextCountsUp(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 20), "order", nil)
	defer closeBuffer(t, b)
	for want := int64(1); want <= 1000; want++ {
		if got := next(t, b); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

func TestTakeSpansSegments(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 20), "order", nil)
	defer closeBuffer(t, b)
	next(t, b)
	kept := []leaf.Range{{Start: 7, End: 8}}
	got, err := b.Take(t.Context(), kept, 5000)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != kept[0] || got[1] != (leaf.Range{Start: 2, End: 5002}) {
		t.Fatalf("got %v", got)
	}
}

// A batch that may not wait takes all of its IDs from the stock, or leaves it alone: a part would be lost.
func TestTakeWithoutAWaitLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := segment.NewBuffer(newStore(t, 1, 100), "order", nil)
		defer closeBuffer(t, b)
		ended, end := context.WithCancel(t.Context())
		end()
		last := int64(0)
		for range 200 {
			id := next(t, b)
			if id != last+1 {
				t.Fatalf("%d follows %d", id, last)
			}
			last = id
			synctest.Wait()
			ranges, err := b.Take(ended, nil, int(b.Stats().Stock)+1)
			if err == nil { // the store was as fast as the call
				last = ranges[len(ranges)-1].End - 1
			}
			synctest.Wait()
		}
	})
}

func TestTakeRefusesBadCounts(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 20), "order", &segment.Options{MaxStock: 1000})
	defer closeBuffer(t, b)
	for _, n := range []int{0, -1, 1001, math.MaxInt} {
		_, err := b.Take(t.Context(), nil, n)
		wantError(t, err, leaf.ErrInvalid)
	}
	if got := next(t, b); got != 1 {
		t.Fatalf("refused calls consumed IDs: got %d", got)
	}
}

func TestConcurrentCallersShareNothing(t *testing.T) {
	store := newStore(t, 1, 10)
	b := segment.NewBuffer(store, "order", nil)
	defer closeBuffer(t, b)
	var ranges drivertest.Ranges
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			last := int64(0)
			for i := range 3000 {
				if g%4 == 0 && i%100 == 0 {
					got, err := b.Take(t.Context(), nil, 250)
					if err != nil {
						t.Error(err)
						return
					}
					ranges.Add(got...)
					last = got[len(got)-1].End - 1
					continue
				}
				id, err := b.Next(t.Context())
				if err != nil || id <= last {
					t.Errorf("got %d after %d, error %v", id, last, err)
					return
				}
				last = id
				ranges.Add(leaf.Range{Start: id, End: id + 1})
			}
		})
	}
	wg.Wait()
	if err := ranges.Check(); err != nil {
		t.Fatal(err)
	}
	if got, want := ranges.Count(), int64(16*3000-4*30+4*30*250); got != want {
		t.Fatalf("got %d IDs, want %d", got, want)
	}
}

// A batch is whole, also where other callers take the rest of a grant from under it.
func TestConcurrentBatchesAreWhole(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 8), "order", &segment.Options{MaxStock: 100, Wait: time.Minute})
	defer closeBuffer(t, b)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 40_000 {
				got, err := b.Take(t.Context(), nil, 3)
				n := int64(0)
				for _, r := range got {
					n += r.Len()
				}
				if err != nil || n != 3 {
					t.Errorf("got %d IDs, error %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestUnknownTag(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 10), "nope", nil)
	_, err := b.Next(t.Context())
	wantError(t, err, leaf.ErrUnknownTag)
	_, err = b.Take(t.Context(), nil, 3)
	wantError(t, err, leaf.ErrUnknownTag)
}

func TestNextDoesNotLookAtContextWhileThereIsStock(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 10), "order", nil)
	defer closeBuffer(t, b)
	next(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := b.Next(ctx); err != nil || id != 2 {
		t.Fatalf("got %d, %v", id, err)
	}
}

// If a caller's context ends while the store is slow, the caller gets the context's error. The call
// to the store continues and its range serves others.
func TestContextEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Latency: 500 * time.Millisecond})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := b.Next(ctx)
		wantError(t, err, context.DeadlineExceeded)
		if got := next(t, b); got != 1 {
			t.Fatalf("got %d, want 1", got)
		}
		if n := store.Calls(drivertest.OpAdvance); n != 1 {
			t.Fatalf("%d calls to the store, want 1", n)
		}
	})
}

// 64 clients, a store that takes 50 ms, a step of 10: Java Leaf answers -3.
func TestSlowStoreIsNoError(t *testing.T) {
	for _, policy := range []segment.Policy{segment.Adaptive, segment.Leaf} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 10)
			store.Set(drivertest.Fault{Latency: 50 * time.Millisecond})
			b := segment.NewBuffer(store, "order", &segment.Options{Policy: policy})
			defer closeBuffer(t, b)
			var ranges drivertest.Ranges
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range 2000 {
						id, err := b.Next(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						ranges.Add(leaf.Range{Start: id, End: id + 1})
						time.Sleep(time.Millisecond)
					}
				})
			}
			wg.Wait()
			if err := ranges.Check(); err != nil || ranges.Count() != 64*2000 {
				t.Fatal(ranges.Count(), err)
			}
		})
	}
}

// Where the store deals in units smaller than the demand, callers take turns.
func TestSmallUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Latency: 50 * time.Millisecond})
		b := segment.NewBuffer(ones{store}, "order", nil)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := b.Next(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		closeBuffer(t, b)
	})
}

// There a batch gets its turn among single calls.
func TestBatchAmongSingles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Latency: time.Millisecond})
		b := segment.NewBuffer(ones{store}, "order", nil)
		defer closeBuffer(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = b.Next(ctx)
				}
			})
		}
		if _, err := b.Take(ctx, nil, 20); err != nil {
			t.Error(err)
		}
		cancel()
		wg.Wait()
	})
}

// ones grants one ID at a time.
type ones struct{ *drivertest.Faulty }

func (o ones) Advance(ctx context.Context, tag string, _ int64) (segment.Grant, error) {
	return o.Faulty.Advance(ctx, tag, 1)
}

func TestCounterAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, math.MaxInt64-15, 10)
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		defer closeBuffer(t, b)
		for want := int64(math.MaxInt64 - 15); want < math.MaxInt64-5; want++ {
			if got := next(t, b); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
		start := time.Now()
		for range 100_000 {
			_, err := b.Next(t.Context())
			wantError(t, err, leaf.ErrOverflow)
		}
		if waited := time.Since(start); waited > time.Second {
			t.Fatalf("waited %v for a refusal", waited)
		}
	})
}

// A store that grants nonsense, or the same range again, is not believed.
func TestLyingStoreIsNotBelieved(t *testing.T) {
	for _, r := range []leaf.Range{{}, {Start: 5, End: 5}, {Start: -1, End: 1}, {Start: 10, End: 20}} {
		synctest.Test(t, func(t *testing.T) {
			b := segment.NewBuffer(fixed{r}, "order", nil)
			defer closeBuffer(t, b)
			if n := drain(t, b); n != max(0, r.Len()) && r.Start >= 0 {
				t.Fatalf("%v: issued %d IDs", r, n)
			}
		})
	}
}

// fixed grants the same range for ever.
type fixed struct{ r leaf.Range }

func (f fixed) Advance(context.Context, string, int64) (segment.Grant, error) {
	return segment.Grant{Range: f.r, Step: 10}, nil
}

func (f fixed) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(func(segment.Tag, error) bool) {}
}
