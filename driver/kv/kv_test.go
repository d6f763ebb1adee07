package kv_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/kvtest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A rough backend is one that keeps to its contract and to no more: a conflict tells
// nothing, and a listing comes in any order.
type rough struct{ *memory.Backend }

func (b rough) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	now, err := b.Backend.Swap(ctx, old, value)
	if err != nil {
		now = kv.Cell{}
	}
	return now, err
}

func (b rough) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		var cells []kv.Cell
		for c, err := range b.Backend.List(ctx, kind) {
			if err != nil {
				yield(kv.Cell{}, err)
				return
			}
			cells = append(cells, c)
		}
		rand.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		for _, c := range cells {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// An adding backend moves counters by itself, and says that it moved them by more than it did.
type adding struct {
	*memory.Backend
	more int64
}

func (b adding) Add(ctx context.Context, key kv.Key, n int64) (now kv.Cell, by int64, err error) {
	for err = kv.ErrConflict; errors.Is(err, kv.ErrConflict); {
		if now, err = b.Get(ctx, key); err != nil {
			return now, 0, err
		}
		var t map[string]any
		d := json.NewDecoder(strings.NewReader(now.Value))
		d.UseNumber()
		if d.Decode(&t) != nil || t["deleted"] == true || t["v"] != json.Number("1") && t["v"] != json.Number("2") || strings.Contains(now.Value, `"order":"`) {
			return now, 0, nil
		}
		maxID, _ := t["max_id"].(json.Number).Int64()
		step, _ := t["step"].(json.Number).Int64()
		if by = n; n == 0 {
			by = step
		}
		if by > math.MaxInt64-maxID {
			return now, 0, nil
		}
		t["max_id"] = maxID + by
		text, _ := json.Marshal(t)
		now, err = b.Swap(ctx, now, string(text))
	}
	return now, by + b.more, err
}

// The store does not issue a range from an impossible answer of the backend.
func TestAdderIsChecked(t *testing.T) {
	cells := memory.NewBackend()
	newStore(t, cells, order)
	for _, more := range []int64{1, -1, -10, math.MinInt64} {
		s := open(t, adding{cells, more}).Store()
		for _, n := range []int64{0, 10} {
			if grant, err := s.Advance(t.Context(), "order", n); err == nil {
				t.Errorf("%d more than %d: %+v", more, n, grant)
			}
		}
	}
}

// backends are the ones that the suites run over: each function returns another client of
// the same cells.
var backends = map[string]func(*memory.Backend) kv.Backend{
	"memory": func(b *memory.Backend) kv.Backend { return b },
	"rough":  func(b *memory.Backend) kv.Backend { return rough{b} },
	"adding": func(b *memory.Backend) kv.Backend { return adding{Backend: b} },
}

// open returns a DB of its own on the cells.
func open(t testing.TB, b kv.Backend) *kv.DB {
	db := kv.New(b, nil)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newStore(t testing.TB, b kv.Backend, tags ...segment.Tag) *kv.Store {
	t.Helper()
	db := open(t, b)
	if err := db.Init(t.Context(), tags); err != nil {
		t.Fatal(err)
	}
	return db.Store()
}

func TestStore(t *testing.T) {
	for name, client := range backends {
		t.Run(name, func(t *testing.T) {
			drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
				cells := memory.NewBackend()
				newStore(t, cells)
				return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return kvtest.Store(open(t, client(cells))) }}
			})
		})
	}
}

func TestRegistry(t *testing.T) {
	for name, client := range backends {
		t.Run(name, func(t *testing.T) {
			drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
				cells := memory.NewBackend()
				if err := open(t, cells).InitRegistry(t.Context()); err != nil {
					t.Fatal(err)
				}
				return drivertest.RegistryBackend{
					Open: func(t testing.TB) worker.Registry { return kvtest.Registry(open(t, client(cells))) },
					Corrupt: func(t testing.TB, id int64, text string) {
						now, err := cells.Get(t.Context(), kv.Key{Kind: kv.Workers, Name: strconv.FormatInt(id, 10)})
						if err == nil {
							_, err = cells.Swap(t.Context(), now, text)
						}
						if err != nil {
							t.Error(err)
						}
					},
				}
			})
		})
	}
}

// A lossy backend loses the reply of some swaps.
type lossy struct {
	kv.Backend
	lose  atomic.Bool
	swaps atomic.Int64
}

var errLost = errors.New("the reply was lost")

func (b *lossy) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	b.swaps.Add(1)
	now, err := b.Backend.Swap(ctx, old, value)
	if err == nil && b.lose.Load() {
		return kv.Cell{}, errLost
	}
	return now, err
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 1000}

// A swap whose reply was lost is sent once, and its IDs are lost: the next range begins
// behind them, and nothing is given back.
func TestReplyLost(t *testing.T) {
	b := &lossy{Backend: memory.NewBackend()}
	s := newStore(t, b, order)
	advance := func(want leaf.Range) segment.Grant {
		t.Helper()
		got, err := s.Advance(t.Context(), "order", 10)
		if err != nil || got.Range != want {
			t.Errorf("got %v, %v, want %v", got.Range, err, want)
		}
		return got
	}
	last := advance(leaf.Range{Start: 1, End: 11})
	before := b.swaps.Load()
	b.lose.Store(true)
	if _, err := s.Advance(t.Context(), "order", 10); !errors.Is(err, errLost) {
		t.Errorf("got error %v", err)
	}
	if n := b.swaps.Load() - before; n != 1 {
		t.Errorf("the swap was sent %d times", n)
	}
	if err := s.Return(t.Context(), "order", last, 5); err == nil {
		t.Error("a range went back after a swap of unknown outcome")
	}
	b.lose.Store(false)
	last = advance(leaf.Range{Start: 21, End: 31})
	b.lose.Store(true)
	if err := s.Return(t.Context(), "order", last, 25); !errors.Is(err, errLost) {
		t.Errorf("return: got error %v", err)
	}
	if n := b.swaps.Load() - before; n != 4 {
		t.Errorf("%d swaps were sent, want 4", n)
	}
	b.lose.Store(false)
	advance(leaf.Range{Start: 25, End: 35}) // the returned IDs go to the next caller
}

// A missing store is an error until somebody creates it. A vanished store is not a store without
// tags.
func TestNotCreated(t *testing.T) {
	cells := memory.NewBackend()
	db := open(t, cells)
	s, r := db.Store(), db.Registry()
	check := func(when string, wantStore, wantRegistry error) {
		t.Helper()
		_, advance := s.Advance(t.Context(), "order", 1)
		_, load := r.Load(t.Context(), 7)
		_, list := r.List(t.Context())
		if !errors.Is(advance, wantStore) || !errors.Is(load, wantRegistry) || !errors.Is(list, wantRegistry) {
			t.Errorf("%s: advance: %v; load: %v; list: %v", when, advance, load, list)
		}
	}
	check("at first", segment.ErrNotCreated, worker.ErrNotCreated)
	empty := cells.Snapshot()
	if err := errors.Join(db.Init(t.Context(), nil), db.InitRegistry(t.Context())); err != nil {
		t.Fatal(err)
	}
	check("created", leaf.ErrUnknownTag, nil)
	if err := s.Create(t.Context(), order); err != nil {
		t.Error(err)
	}
	cells.Restore(empty)
	check("gone again", segment.ErrNotCreated, worker.ErrNotCreated)
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1}); !errors.Is(err, worker.ErrNotCreated) {
		t.Errorf("swap: %v", err)
	}
}

// Of several that create a store at once one does, and all its tags are there; one that
// was interrupted is completed, and no counter moves back.
func TestInit(t *testing.T) {
	cells := memory.NewBackend()
	var created atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		db := open(t, cells)
		wg.Go(func() {
			err := db.Init(t.Context(), []segment.Tag{order, {Name: "user", Step: 1}})
			if err == nil {
				created.Add(1)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
			if err := db.InitRegistry(t.Context()); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := created.Load(); n != 1 {
		t.Errorf("%d calls created the store", n)
	}
	s := open(t, cells).Store()
	for _, tag := range []string{"order", "user"} {
		if _, err := s.Advance(t.Context(), tag, 1); err != nil {
			t.Error(err)
		}
	}
	interrupted := cells.Snapshot()
	for key := range interrupted {
		if key.Kind == kv.Format {
			delete(interrupted, key)
		}
	}
	cells.Restore(interrupted)
	newStore(t, cells, order)
	if got, err := s.Advance(t.Context(), "order", 1); err != nil || got.Range.Start != 2 {
		t.Errorf("after an interrupted init: got %v, %v", got.Range, err)
	}
}

// Cells of a newer release are refused.
func TestNewerFormat(t *testing.T) {
	workers := kv.Key{Kind: kv.Format, Name: "workers"}
	for key, want := range map[kv.Key]error{
		{Kind: kv.Format, Name: "tags"}: leaf.ErrUnsupported, {Kind: kv.Tags, Name: "order"}: leaf.ErrUnsupported, workers: worker.ErrNewer,
	} {
		cells := memory.NewBackend()
		db := open(t, cells)
		if err := errors.Join(db.Init(t.Context(), []segment.Tag{order}), db.InitRegistry(t.Context())); err != nil {
			t.Fatal(err)
		}
		now, _ := cells.Get(t.Context(), key)
		if _, err := cells.Swap(t.Context(), now, `{"v":9}`); err != nil {
			t.Fatal(err)
		}
		db = open(t, cells)
		_, err := db.Store().Advance(t.Context(), "order", 1)
		if key == workers {
			_, err = db.Registry().Load(t.Context(), 7)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s of format 9: got error %v, want one that wraps %v", key, err, want)
		}
	}
}

// The known cell may be out of date: it is no reason to refuse a call.
func TestOverflowIsLookedUp(t *testing.T) {
	cells := memory.NewBackend()
	s := newStore(t, cells, segment.Tag{Name: "order", MaxID: 1<<63 - 11, Step: 1})
	if _, err := s.Advance(t.Context(), "order", 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(t.Context(), "order", 10); !errors.Is(err, leaf.ErrOverflow) {
		t.Errorf("got error %v", err)
	}
	if _, err := open(t, cells).Store().Alter(t.Context(), "order", segment.Change{MaxID: new(int64(100)), Force: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Advance(t.Context(), "order", 10); err != nil || got.Range.Start != 100 {
		t.Errorf("got %v, %v, want a range from 100", got.Range, err)
	}
}

// A slow backend takes a millisecond for a trip.
type slow struct{ kv.Backend }

const trip = time.Millisecond

func (b slow) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	time.Sleep(trip / 2)
	defer time.Sleep(trip / 2)
	return b.Backend.Get(ctx, key)
}

func (b slow) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	time.Sleep(trip / 2)
	defer time.Sleep(trip / 2)
	return b.Backend.Swap(ctx, old, value)
}

// Processes that want one counter all the time each get a share of it, also when every trip
// takes equally long, and together nearly what one process gets alone. A process alone is
// hardly slowed down for the sake of others.
func TestShare(t *testing.T) {
	for n, want := range map[int]int{1: 9600, 2: 2000, 3: 2000, 8: 2000, 32: 2000} {
		t.Run(fmt.Sprintf("%d processes", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cells := slow{memory.NewBackend()}
				newStore(t, cells, order)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				shares := make([]int, n)
				var dealt drivertest.Ranges
				var wg sync.WaitGroup
				for i := range shares {
					s := open(t, cells).Store()
					wg.Go(func() {
						for ctx.Err() == nil {
							if got, err := s.Advance(ctx, "order", 10); err == nil {
								dealt.Add(got.Range)
								shares[i]++
							}
						}
					})
				}
				wg.Wait()
				if err := dealt.Check(); err != nil {
					t.Error(err)
				}
				total, least := 0, shares[0]
				for _, share := range shares {
					total += share
					least = min(least, share)
				}
				t.Logf("%d allocations, the least %d: %v", total, least, shares)
				if least*n*6 < total { // one of two may win in long rows
					t.Errorf("of %d allocations one of %d processes got %d", total, n, least)
				}
				if total < want {
					t.Errorf("%d allocations in the time of 10000 trips, want %d", total, want)
				}
			})
		})
	}
}

// counting counts the calls to a backend.
type counting struct {
	kv.Backend
	gets, swaps int
}

func (b *counting) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	b.gets++
	return b.Backend.Get(ctx, key)
}

func (b *counting) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	b.swaps++
	return b.Backend.Swap(ctx, old, value)
}

// A swap of a record that has a version is one call of the backend.
func TestSwapReadsNothing(t *testing.T) {
	b := &counting{Backend: memory.NewBackend()}
	db := open(t, b)
	if err := db.InitRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	record, err := db.Registry().Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.gets, b.swaps = 0, 0
	for range 3 {
		next := record
		next.Horizon = time.UnixMilli(next.Term)
		if record, err = db.Registry().Swap(t.Context(), record, next); err != nil {
			t.Fatal(err)
		}
	}
	if b.gets != 0 || b.swaps != 3 {
		t.Errorf("3 swaps made %d reads and %d swaps of the backend", b.gets, b.swaps)
	}
}
