package segment_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

func lendN(t *testing.T, b *segment.Buffer, n int64, want leaf.Range) segment.Grant {
	t.Helper()
	return lendAfter(t, b, n, "", want)
}

func lendAfter(t *testing.T, b *segment.Buffer, n int64, before string, want leaf.Range) segment.Grant {
	t.Helper()
	g, err := b.Advance(t.Context(), n, before)
	if err != nil || g.Range != want {
		t.Fatalf("advance by %d: got %v, %v, want %v", n, g.Range, err, want)
	}
	return g
}

func TestAdvance(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 1000), "order", nil)
	defer closeBuffer(t, b)
	if g := lendN(t, b, 0, leaf.Range{Start: 1, End: 1001}); g.Step != 1000 || g.Version == "" {
		t.Errorf("got %+v", g)
	}
	lendN(t, b, 10, leaf.Range{Start: 1001, End: 1011})
	if id := next(t, b); id != 1011 {
		t.Errorf("next: %d", id)
	}
	_, err := b.Advance(t.Context(), -1, "")
	wantError(t, err, leaf.ErrInvalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Advance(ended, 1, "")
	wantError(t, err, context.Canceled)
	_, err = segment.NewBuffer(newStore(t, 1, 10), "nope", nil).Advance(t.Context(), 0, "")
	wantError(t, err, leaf.ErrUnknownTag)
}

// A server without its store lends half of its stock, and keeps something for others.
func TestAdvanceWithTheStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		b := segment.NewBuffer(store, "order", nil)
		next(t, b)
		store.Set(drivertest.Fault{Before: errors.New("down")})
		lendN(t, b, 1_000_000, leaf.Range{Start: 2, End: 502})
		lendN(t, b, 1_000_000, leaf.Range{Start: 502, End: 752})
		lendN(t, b, 10, leaf.Range{Start: 752, End: 762})
		if id := next(t, b); id != 762 {
			t.Errorf("next: %d", id)
		}
		store.Set(drivertest.Fault{})
		time.Sleep(2 * time.Second)
		if g, err := b.Advance(t.Context(), 5000, ""); err != nil || g.Range.Len() < 200 {
			t.Errorf("got %v, %v", g, err)
		}
		closeBuffer(t, b)
	})
}

func TestReturnToBuffer(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 1000), "order", nil)
	defer closeBuffer(t, b)
	first := lendN(t, b, 100, leaf.Range{Start: 1, End: 101})
	if err := b.Return(t.Context(), first, 51); err != nil {
		t.Fatal(err)
	}
	wantError(t, b.Return(t.Context(), first, 51), leaf.ErrRegression) // a repeated call takes nothing from others
	again := lendN(t, b, 50, leaf.Range{Start: 51, End: 101})
	wantError(t, b.Return(t.Context(), first, 51), leaf.ErrRegression)
	wantError(t, b.Return(t.Context(), again, 0), leaf.ErrInvalid)
	wantError(t, b.Return(t.Context(), again, 101), leaf.ErrInvalid)
	if id := next(t, b); id != 101 {
		t.Errorf("next: %d", id)
	}
	wantError(t, b.Return(t.Context(), again, 60), leaf.ErrRegression) // others took IDs since
	if id := next(t, b); id != 102 {
		t.Errorf("next: %d", id)
	}
}

// A caller gives back its own loans, in one call if nothing came between them, and never the IDs of
// others.
func TestReturnOnlyWhatWasLent(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 1000), "order", nil)
	defer closeBuffer(t, b)
	next(t, b)
	others := lendN(t, b, 99, leaf.Range{Start: 2, End: 101})
	first := lendN(t, b, 100, leaf.Range{Start: 101, End: 201})
	second := lendAfter(t, b, 100, first.Version, leaf.Range{Start: 201, End: 301})
	for _, start := range []int64{0, 1, 2, 100} {
		wantError(t, b.Return(t.Context(), second, start), leaf.ErrInvalid)
	}
	if err := b.Return(t.Context(), second, 150); err != nil {
		t.Fatal(err)
	}
	lendAfter(t, b, 50, second.Version, leaf.Range{Start: 150, End: 200})
	third := lendAfter(t, b, 50, others.Version, leaf.Range{Start: 200, End: 250})
	wantError(t, b.Return(t.Context(), third, 199), leaf.ErrInvalid)
	if id := next(t, b); id != 250 {
		t.Errorf("next: %d", id)
	}
}

// The rest of a loan returns only to the current span: in another one it would stay unused, or go out
// of order.
func TestReturnToASpanThatWasFollowed(t *testing.T) {
	store := newStore(t, 1, 50)
	b := segment.NewBuffer(store, "order", nil)
	drained := lendN(t, b, 50, leaf.Range{Start: 1, End: 51})
	if err := b.Return(t.Context(), drained, 41); err != nil {
		t.Fatal("to a span that is drained, and still the current one:", err)
	}
	followed := lendN(t, b, 10, leaf.Range{Start: 41, End: 51})
	if got, err := b.Take(t.Context(), nil, 1); err != nil || got[0].Start != 51 { // adds nothing to a cursor at its end
		t.Fatalf("take: %v, %v", got, err)
	}
	wantError(t, b.Return(t.Context(), followed, 41), leaf.ErrRegression)
	if id := next(t, b); id != 52 {
		t.Errorf("next: %d", id)
	}
	wantAccounted(t, store, b)
	closeBuffer(t, b)
}

// A returned loan serves callers who wait while the store is down.
func TestReturnWakesCallers(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, b *segment.Buffer) (leaf.Range, error){
		"batch": func(ctx context.Context, b *segment.Buffer) (leaf.Range, error) {
			got, err := b.Take(ctx, nil, 800)
			return slices.Concat(got, make([]leaf.Range, 1))[0], err
		},
		"run": func(ctx context.Context, b *segment.Buffer) (leaf.Range, error) { return b.TakeContiguous(ctx, 800) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore(t, 1, 1000)
				b := segment.NewBuffer(store, "order", nil)
				defer closeBuffer(t, b)
				next(t, b)
				synctest.Wait()
				store.Set(drivertest.Fault{Before: errDown})
				loan := lendN(t, b, 500, leaf.Range{Start: 2, End: 502})
				var wg sync.WaitGroup
				wg.Go(func() {
					begin := time.Now()
					want := leaf.Range{Start: 101, End: 901}
					if got, err := take(t.Context(), b); err != nil || got != want || time.Since(begin) != 100*time.Millisecond {
						t.Errorf("got %v, %v after %v, want %v", got, err, time.Since(begin), want)
					}
				})
				time.Sleep(100 * time.Millisecond)
				if err := b.Return(t.Context(), loan, 101); err != nil {
					t.Error(err)
				}
				wg.Wait()
				store.Set(drivertest.Fault{})
			})
		})
	}
}

// Under every mix of loans, give-backs and single calls, no ID has two owners.
func TestLendUnderLoad(t *testing.T) {
	store := newStore(t, 0, 50)
	b := segment.NewBuffer(store, "order", nil)
	var ranges drivertest.Ranges
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for i := range 2000 {
				if g%3 == 0 {
					id, err := b.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					ranges.Add(leaf.Range{Start: id, End: id + 1})
					continue
				}
				grant, err := b.Advance(t.Context(), int64(1+i%17), "")
				if err != nil {
					t.Error(err)
					return
				}
				middle := grant.Range.Start + (grant.Range.Len()+1)/2
				ranges.Add(leaf.Range{Start: grant.Range.Start, End: middle})
				if middle < grant.Range.End && b.Return(t.Context(), grant, middle) != nil {
					ranges.Add(leaf.Range{Start: middle, End: grant.Range.End})
				}
			}
		})
	}
	all.Wait()
	closeBuffer(t, b)
	ranges.Add(store.Returned("order")...)
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// IDs of a guarded source come in any order.
func TestGuardedSource(t *testing.T) {
	ranges := []leaf.Range{{Start: 500, End: 510}, {Start: 100, End: 110}, {Start: 300, End: 310}}
	store := &scripted{ranges: slices.Clone(ranges)}
	b := segment.NewBuffer(store, "order", &segment.Options{MaxStock: 10, Wait: time.Minute})
	defer closeBuffer(t, b)
	for _, r := range ranges {
		for want := r.Start; want < r.End; want++ {
			if id := next(t, b); id != want {
				t.Fatalf("got %d, want %d", id, want)
			}
		}
	}
}

// A scripted store grants given ranges, as a guarded source.
type scripted struct {
	segment.Store
	ranges []leaf.Range
}

func (s *scripted) Advance(_ context.Context, _ string, n int64) (segment.Grant, error) {
	if len(s.ranges) == 0 {
		return segment.Grant{}, leaf.ErrExhausted
	}
	r := s.ranges[0]
	if n > 0 && n < r.Len() { // a slow machine asks for the rest of the stock
		r.End = r.Start + n
	}
	if s.ranges[0].Start = r.End; s.ranges[0].Empty() {
		s.ranges = s.ranges[1:]
	}
	return segment.Grant{Range: r, Step: 10, Guarded: true}, nil
}

func TestDropBelow(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 1000), "order", nil)
	defer closeBuffer(t, b)
	next(t, b)
	grant := lendN(t, b, 9, leaf.Range{Start: 2, End: 11})
	if n := b.DropBelow(500); n != 489 {
		t.Errorf("dropped %d", n)
	}
	if n := b.DropBelow(500); n != 0 {
		t.Errorf("dropped %d again", n)
	}
	if id := next(t, b); id != 500 {
		t.Errorf("next: %d", id)
	}
	wantError(t, b.Return(t.Context(), grant, 5), leaf.ErrRegression)
	if n := b.DropBelow(100); n != 0 {
		t.Errorf("dropped %d below what was issued", n)
	}
	if id := next(t, b); id != 501 {
		t.Errorf("next: %d", id)
	}
}

// The buffer drops the result of a call in flight as well.
func TestDropBelowWhileCalling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		hold := make(chan struct{})
		store.Next(drivertest.OpAdvance, drivertest.Fault{Hold: hold})
		b := segment.NewBuffer(store, "order", nil)
		got := make(chan int64, 1)
		go func() { got <- next(t, b) }()
		synctest.Wait()
		b.DropBelow(1501)
		close(hold)
		if id := <-got; id != 1501 {
			t.Errorf("got %d", id)
		}
		closeBuffer(t, b)
	})
}

func TestDropBelowUnderLoad(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 0, 50), "order", nil)
	defer closeBuffer(t, b)
	var ranges drivertest.Ranges
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5000 {
				id := next(t, b)
				ranges.Add(leaf.Range{Start: id, End: id + 1})
			}
		})
	}
	all.Go(func() {
		for range 300 {
			id := next(t, b)
			ranges.Add(leaf.Range{Start: id, End: id + 1})
			b.DropBelow(id + 20)
			if id2 := next(t, b); id2 < id+20 {
				t.Errorf("got %d below %d", id2, id+20)
			} else {
				ranges.Add(leaf.Range{Start: id2, End: id2 + 1})
			}
		}
	})
	all.Wait()
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// A recently refused tag is usable at once after this process has created it.
func TestChanged(t *testing.T) {
	store := newStore(t, 1, 10)
	set := segment.NewSet(store, nil)
	defer set.Close(t.Context())
	_, err := set.Next(t.Context(), "new")
	wantError(t, err, leaf.ErrUnknownTag)
	tag := segment.Tag{Name: "new", MaxID: 7, Step: 5}
	if err := store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	set.Server().Changed(tag)
	if id, err := set.Next(t.Context(), "new"); err != nil || id != 7 {
		t.Errorf("got %d, %v", id, err)
	}
	tag.Step = 3
	set.Server().Changed(tag)
	if g, err := set.Server().Advance(t.Context(), "new", 0, ""); err != nil || g.Step != 3 {
		t.Errorf("got %+v, %v", g, err)
	}
}

// Two loans go back together only without an issued ID between them.
func TestReturnOfTwoLoans(t *testing.T) {
	for between, want := range map[int]error{0: nil, 1: leaf.ErrInvalid} {
		b := segment.NewBuffer(newStore(t, 1, 1000), "order", nil)
		next(t, b)
		first := lendN(t, b, 5, leaf.Range{Start: 2, End: 7})
		for range between {
			next(t, b)
		}
		at := int64(7 + between)
		second := lendAfter(t, b, 5, first.Version, leaf.Range{Start: at, End: at + 5})
		wantError(t, b.Return(t.Context(), second, 4), want)
		closeBuffer(t, b)
	}
}
