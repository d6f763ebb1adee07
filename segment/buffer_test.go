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
	store := memory.New()
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

// A caller whose context ends while the store is slow gets the context's error; the
// call to the store goes on and its range serves others.
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

// A store that fails for less than a caller waits is no error.
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

// A batch that cannot be had during an outage leaves single calls what there is.
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
func TestBatchLeavesTheStockOnVerdict(t *testing.T) {
	for _, fault := range []error{errDown, leaf.ErrOverflow} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 1000)
			b := segment.NewBuffer(store, "order", &segment.Options{MaxStock: 10_000})
			defer closeBuffer(t, b)
			next(t, b)
			synctest.Wait()
			store.Set(drivertest.Fault{Before: fault, Latency: 10 * time.Millisecond})
			defer store.Set(drivertest.Fault{})
			for range 110 { // a tenth is used: the store is asked
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
		consume(t, b, 100, 2*time.Minute)
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
func TestStaleTrouble(t *testing.T) {
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

// Replies that are lost again and again cost a step each, not the whole target.
func TestLostRepliesCostLittle(t *testing.T) {
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

// A store that can never serve makes nobody wait.
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

// Nobody hammers a failing store (Java Leaf made 510 calls in 22 ms), and a tag
// that was never served is not asked for when nobody waits for it.
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
			t.Fatalf("%d calls for a tag that nobody wants", n)
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
		defer b.Close(t.Context()) // what it cannot give back is lost
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
			t.Fatalf("waited %v for a verdict", waited)
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
