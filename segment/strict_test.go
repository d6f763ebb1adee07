package segment_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

var strict = segment.Tag{Name: "order", MaxID: 1, Step: 1000, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}

// A strictStore is a store with one strict tag whose calls wait for a release.
type strictStore struct {
	segment.Store
	mu    sync.Mutex
	next  int64
	asked []int64
	held  chan error // a call takes its outcome from here; nil: it succeeds at once
}

func (s *strictStore) Advance(context.Context, string, int64) (segment.Grant, error) {
	return segment.Grant{}, segment.ErrStrict
}

func (s *strictStore) AdvanceStrict(ctx context.Context, _, _ string, n int64) (segment.Grant, error) {
	s.mu.Lock()
	s.asked = append(s.asked, n)
	s.mu.Unlock()
	if s.held != nil {
		select {
		case err := <-s.held:
			if err != nil {
				return segment.Grant{}, err
			}
		case <-ctx.Done():
			return segment.Grant{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next += n
	return segment.Grant{Range: leaf.Range{Start: s.next - n, End: s.next}, Step: 1}, nil
}

// A caller never joins a call under way, and one call serves all who wait.
func TestStrictJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strictStore{next: 1, held: make(chan error)}
		b := segment.NewBuffer(s, "order", nil)
		var wg sync.WaitGroup
		var last atomic.Int64
		wg.Go(func() {
			if id, err := b.Next(t.Context()); err != nil || id != 1 {
				t.Errorf("first: %d, %v", id, err)
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				id, err := b.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				last.Store(max(last.Load(), id))
			})
		}
		gone, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, err := b.Take(gone, nil, 100); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller who left: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		s.held <- nil
		s.held <- nil
		wg.Wait()
		if !slices.Equal(s.asked, []int64{1, 3}) || last.Load() != 4 {
			t.Errorf("the store was asked for %v, and the last ID is %d", s.asked, last.Load())
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if id, err := b.Next(t.Context()); !errors.Is(err, leaf.ErrClosed) {
			t.Errorf("after Close: %d, %v", id, err)
		}
	})
}

// Without its store a strict tag fails at once, and a hanging store fails within the wait.
func TestStrictWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strictStore{next: 1, held: make(chan error, 1)}
		b := segment.NewBuffer(s, "order", nil)
		for _, failing := range []bool{true, false} {
			start, want := time.Now(), segment.DefaultWait
			if failing {
				s.held <- errors.New("connection refused")
				want = 0
			}
			if id, err := b.Next(t.Context()); !errors.Is(err, leaf.ErrExhausted) || time.Since(start) != want {
				t.Errorf("got %d, %v after %v, want ErrExhausted after %v", id, err, time.Since(start), want)
			}
		}
		time.Sleep(segment.DefaultCallTimeout)
		s.held <- nil
		if id, err := b.Next(t.Context()); err != nil || id != 1 {
			t.Errorf("the store answers again: %d, %v", id, err)
		}
	})
}

// Callers who need several calls to the store wait for longer than [segment.Options.Wait] while the
// store delivers.
func TestStrictWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strictStore{next: 1, held: make(chan error)}
		b := segment.NewBuffer(s, "order", nil)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := b.Take(t.Context(), nil, 10_000); err != nil {
					t.Error(err)
				}
			})
		}
		for range 5 {
			time.Sleep(segment.DefaultWait * 9 / 10)
			s.held <- nil
		}
		wg.Wait()
		start := time.Now()
		if _, err := b.Next(t.Context()); !errors.Is(err, leaf.ErrExhausted) || time.Since(start) != segment.DefaultWait {
			t.Errorf("the store hangs: %v after %v", err, time.Since(start))
		}
		s.held <- nil // to none
		synctest.Wait()
	})
}

// Several sets over one store issue in order, without a gap, by every method.
func TestStrictSets(t *testing.T) {
	db := memory.New()
	store := db.Store()
	if err := db.Store().Create(t.Context(), strict); err != nil {
		t.Fatal(err)
	}
	type call struct {
		began, ended int64
		leaf.Range
	}
	var clock atomic.Int64
	var mu sync.Mutex
	var calls []call
	var wg sync.WaitGroup
	for range 3 {
		set := segment.NewSet(store, nil)
		defer set.Close(context.Background())
		cursor := set.Cursor("order", 0)
		for _, take := range []func() (leaf.Range, error){
			func() (leaf.Range, error) {
				id, err := set.Next(t.Context(), "order")
				return leaf.Range{Start: id, End: id + 1}, err
			},
			func() (leaf.Range, error) {
				id, err := cursor.Next(t.Context())
				return leaf.Range{Start: id, End: id + 1}, err
			},
			func() (leaf.Range, error) {
				ranges, err := set.Take(t.Context(), "order", nil, 7)
				return ranges[0], err
			},
			func() (leaf.Range, error) { return set.TakeContiguous(t.Context(), "order", 5) },
			func() (leaf.Range, error) {
				g, err := set.Server().AdvanceStrict(t.Context(), "order", nil, false, 3)
				return g.Range, err
			},
		} {
			wg.Go(func() {
				for range 200 {
					c := call{began: clock.Add(1)}
					var err error
					if c.Range, err = take(); err != nil {
						t.Error(err)
						return
					}
					c.ended = clock.Add(1)
					mu.Lock()
					calls = append(calls, c)
					mu.Unlock()
				}
			})
		}
		wg.Go(func() {
			if g, err := set.Server().Advance(t.Context(), "order", 10, ""); !errors.Is(err, segment.ErrStrict) {
				t.Errorf("a loan: %+v, %v, want ErrStrict", g, err)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(calls, func(a, b call) int { return int(a.Start - b.Start) })
	end, latest := int64(1), int64(0)
	for _, c := range calls {
		if c.Start != end || c.ended < latest {
			t.Fatalf("%+v follows %d; an ID above it was there before it began: %t", c, end, c.ended < latest)
		}
		end, latest = c.End, max(latest, c.began)
	}
}

// A deleted strict tag, created again without an order, gets a stock.
func TestStrictDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.New()
		if err := db.Store().Create(t.Context(), strict); err != nil {
			t.Fatal(err)
		}
		set := segment.NewSet(db.Store(), nil)
		defer set.Close(t.Context())
		if id, err := set.Next(t.Context(), "order"); err != nil || id != 1 {
			t.Fatal(id, err)
		}
		if err := db.Store().Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		if id, err := set.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("deleted: %d, %v", id, err)
		}
		if err := db.Store().Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		for want := int64(2); want < 5; want++ {
			if id, err := set.Next(t.Context(), "order"); err != nil || id != want {
				t.Errorf("created again: %d, %v, want %d", id, err, want)
			}
		}
		synctest.Wait() // for the refill
		for tag, err := range db.Store().Tags(t.Context()) {
			if err != nil || tag.MaxID != 22 {
				t.Errorf("the counter stands at %d, %v, want 22", tag.MaxID, err)
			}
		}
	})
}

// A tag with a stock, deleted and created again with strict order, loses that stock: the other servers
// have larger IDs by then. The set learns of it by its next refill, or its next check.
func TestStrictCreatedAgain(t *testing.T) {
	for name, learn := range map[string]func(context.Context, *segment.Set) error{
		"by a refill": func(ctx context.Context, set *segment.Set) error {
			_, err := set.Take(ctx, "order", nil, 700)
			return err
		},
		"by a check": func(context.Context, *segment.Set) error { time.Sleep(2 * time.Minute); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := memory.New()
				if err := db.Store().Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 1000}); err != nil {
					t.Fatal(err)
				}
				set := segment.NewSet(db.Store(), nil)
				defer set.Close(t.Context())
				if id, err := set.Next(t.Context(), "order"); err != nil || id != 1 {
					t.Fatal(id, err)
				}
				synctest.Wait()
				if err := errors.Join(db.Store().Delete(t.Context(), "order"), db.Store().Create(t.Context(), strict), learn(t.Context(), set)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				g, err := set.Server().AdvanceStrict(t.Context(), "order", new(string), false, 1)
				if id, err2 := set.Next(t.Context(), "order"); err != nil || err2 != nil || id != g.Range.End {
					t.Errorf("%d follows %v, %v, %v", id, g.Range, err, err2)
				}
			})
		})
	}
}

// The order strict needs a store that keeps acknowledged writes; strict-lossy consents to others.
func TestCheckStrict(t *testing.T) {
	for _, tt := range []struct {
		order string
		lossy bool
		want  error
	}{
		{segment.OrderStrict, false, nil},
		{segment.OrderStrict, true, leaf.ErrUnsupported},
		{segment.OrderStrictLossy, true, nil},
		{segment.OrderStrictLossy, false, nil},
		{"", false, leaf.ErrUnknownTag},
	} {
		if err := (segment.TagOptions{segment.OptionOrder: tt.order}).CheckStrict(tt.lossy, false); !errors.Is(err, tt.want) {
			t.Errorf("order %q, lossy %t: %v, want %v", tt.order, tt.lossy, err, tt.want)
		}
	}
}

// A recreated is a strictStore whose tag was a usual one at the first grant.
type recreated struct {
	strictStore
	granted bool
}

func (s *recreated) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if s.granted {
		return s.strictStore.Advance(ctx, tag, n)
	}
	s.granted = true
	return segment.Grant{Range: leaf.Range{Start: 1, End: 1001}, Step: 10}, nil
}

// A batch that has begun with IDs of a deleted tag has all its IDs of the new one.
func TestStrictInTheMiddleOfABatch(t *testing.T) {
	s := &recreated{strictStore: strictStore{next: 5001}}
	b := segment.NewBuffer(s, "order", nil)
	defer b.Close(t.Context())
	if id, err := b.Next(t.Context()); err != nil || id != 1 {
		t.Fatal(id, err)
	}
	got, err := b.Take(t.Context(), nil, 1500)
	if want := []leaf.Range{{Start: 5001, End: 6501}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// A caller that finds no stock just before the store refuses to give one does not wait for it.
func TestStrictMeanwhile(t *testing.T) {
	store := newStore(t, 1, 10)
	if err := store.Create(t.Context(), segment.Tag{Name: "strict", MaxID: 1, Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}); err != nil {
		t.Fatal(err)
	}
	b := segment.NewBuffer(store, "strict", nil)
	defer b.Close(t.Context())
	if _, err := b.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(t.Context()); err != nil {
		t.Error(err)
	}
}
