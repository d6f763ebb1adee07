package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A linearStore is a store and registry that loses no acknowledged write, and what can happen to
// its server.
type linearStore struct {
	url     string
	strikes [][2]func() error // a fault and its end
}

// The stores that keep acknowledged writes through a kill of their servers.
var linearStores = map[string]func(t *testing.T) linearStore{
	"sqlite": func(t *testing.T) linearStore {
		return linearStore{url: "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")}
	},
	"mariadb": func(t *testing.T) linearStore {
		s := testserver.MariaDB(t, nil)
		return linearStore{s.URL(s.NewDatabase(t)), [][2]func() error{{s.Pause, s.Resume}, {s.Kill, s.Start}}}
	},
	"postgres": func(t *testing.T) linearStore {
		s := testserver.Postgres(t, nil)
		return linearStore{s.URL(s.NewDatabase(t)), [][2]func() error{{s.Pause, s.Resume}, {s.Kill, s.Start}}}
	},
	"etcd": func(t *testing.T) linearStore {
		c := testserver.Etcd(t, nil)
		on := func(do func(int) error) func() error { return func() error { return do(0) } }
		return linearStore{c.URL("linear"), [][2]func() error{{on(c.Pause), on(c.Resume)}, {on(c.Kill), on(c.Restart)}}}
	},
	"redis": func(t *testing.T) linearStore {
		s := testserver.Redis(t, nil)
		return linearStore{s.URL(), [][2]func() error{{s.Pause, s.Resume}, {s.Kill, s.Start}}}
	},
	"zookeeper": func(t *testing.T) linearStore {
		s := testserver.ZooKeeper(t)
		return linearStore{"zookeeper://" + s.Addr(), [][2]func() error{{s.Pause, s.Resume}, {s.Kill, s.Start}}}
	},
}

// Drivers call real servers, which the test freezes and kills, as one counter and as one cell:
// an order of the calls explains all answers.
func TestLinearizable(t *testing.T) {
	for name, start := range linearStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := labSeed(t)
			store := start(t)
			initBoth(t, store.url, []segment.Tag{{Name: "order", MaxID: 1, Step: 10}})
			l := &linear{url: store.url, over: make(chan struct{}), start: time.Now()}
			for i := range 3 {
				l.client(t, rand.New(rand.NewPCG(seed, uint64(i))))
			}
			rng := rand.New(rand.NewPCG(seed, 1<<32))
			for range figure(2, 6) {
				for _, strike := range store.strikes {
					time.Sleep(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
					err := strike[0]()
					time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
					if err := errors.Join(err, strike[1]()); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(300 * time.Millisecond)
			}
			until(t, time.Minute, "enough calls", l.enough)
			close(l.over)
			l.wg.Wait()
			l.check(t, seed)
		})
	}
}

// linear records the calls of a store's clients.
type linear struct {
	url      string
	over     chan struct{}
	start    time.Time
	wg       sync.WaitGroup
	counter  labcheck.Ops
	cell     labcheck.Ops
	mu       sync.Mutex
	advances int
	swaps    int
}

// client opens the store and the registry, as a server does, and calls both until all is over.
func (l *linear) client(t *testing.T, rng *rand.Rand) {
	t.Helper()
	b, err := drivers.Open(l.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := b.Store()
	if err != nil {
		t.Fatal(err)
	}
	registry, err := b.Registry(nil)
	if err != nil {
		t.Fatal(err)
	}
	seed := rng.Uint64()
	var calls sync.WaitGroup
	calls.Go(func() { l.repeat(rng, func() { l.advance(store, rng) }) })
	cells := rand.New(rand.NewPCG(seed, 0))
	calls.Go(func() { l.repeat(cells, func() { l.swap(registry, cells) }) })
	l.wg.Go(func() {
		calls.Wait()
		_ = b.Close()
	})
}

// repeat makes one call after the other until all is over.
func (l *linear) repeat(rng *rand.Rand, call func()) {
	for {
		select {
		case <-l.over:
			return
		case <-time.After(time.Duration(rng.Int64N(int64(40 * time.Millisecond)))):
			call()
		}
	}
}

func (l *linear) now() time.Duration { return time.Since(l.start) }

// linearTimeout is the time-out of a client. Its abandoned calls may take effect later.
const linearTimeout = time.Second

func (l *linear) advance(store segment.Store, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), linearTimeout)
	defer cancel()
	n := 2 + rng.Int64N(9)
	begin := l.now()
	grant, err := store.Advance(ctx, "order", n)
	l.counter.Advance(begin, l.now(), n, grant.Range, err)
	if err != nil {
		l.untilAnswered(store)
		return
	}
	l.mu.Lock()
	l.advances++
	l.mu.Unlock()
	if r, ok := store.(segment.Returner); ok && rng.IntN(3) == 0 {
		start := grant.Range.Start + 1
		begin = l.now()
		err = r.Return(ctx, "order", grant, start)
		if !errors.Is(err, leaf.ErrUnsupported) {
			l.counter.GiveBack(begin, l.now(), leaf.Range{Start: start, End: grant.Range.End}, err)
		}
	}
}

// untilAnswered waits for the end of an outage. The outcome of every Advance in it would be unknown,
// and each one doubles the search for an order.
func (l *linear) untilAnswered(store segment.Store) {
	for {
		select {
		case <-l.over:
			return
		case <-time.After(20 * time.Millisecond):
			if tags(store) == nil {
				return
			}
		}
	}
}

// tags reports whether the store answers.
func tags(store segment.Store) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), linearTimeout)
	defer cancel()
	for _, err = range store.Tags(ctx) {
		if err != nil {
			break
		}
	}
	return err
}

func (l *linear) swap(registry worker.Registry, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), linearTimeout)
	defer cancel()
	begin := l.now()
	old, err := registry.Load(ctx, 1)
	if err != nil {
		return
	}
	l.cell.Load(begin, l.now(), recordText(old))
	if rng.IntN(2) == 0 {
		return
	}
	next := worker.Record{Worker: 1, Instance: worker.NewInstance(), Term: old.Term + 1, Horizon: time.UnixMilli(old.Term + 1)}
	begin = l.now()
	_, err = registry.Swap(ctx, old, next)
	outcome := labcheck.Done
	switch {
	case errors.Is(err, worker.ErrConflict):
		outcome = labcheck.Conflict
	case err != nil:
		outcome = labcheck.Unknown
	default:
		l.mu.Lock()
		l.swaps++
		l.mu.Unlock()
	}
	l.cell.Swap(begin, l.now(), recordText(old), recordText(next), outcome)
}

func recordText(r worker.Record) string {
	text, err := r.MarshalText()
	if err != nil {
		panic(err) // a record always has a text
	}
	return string(text)
}

// enough reports that too few calls have been answered.
func (l *linear) enough() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.advances < 50 || l.swaps < 20 {
		return fmt.Errorf("%d advances and %d swaps", l.advances, l.swaps)
	}
	return nil
}

// check looks for an order of the calls, and saves the results.
func (l *linear) check(t *testing.T, seed uint64) {
	t.Helper()
	t.Logf("%d advances, %d swaps, seed %d", l.advances, l.swaps, seed)
	for _, c := range []struct {
		of  *labcheck.Ops
		err error
	}{{&l.counter, l.counter.CheckCounter(1)}, {&l.cell, l.cell.CheckCell(recordText(worker.Record{Worker: 1}))}} {
		if c.err != nil {
			t.Errorf("%v\nreplay: LEAF_SEED=%d go test -run '%s$' .", c.err, seed, t.Name())
		}
		if dir := os.Getenv("LEAF_REPORT"); dir != "" {
			found := labcheck.Search{Test: t.Name(), Seed: seed, Calls: c.of.Len(), Undecided: errors.Is(c.err, labcheck.ErrUndecided)}
			if err := found.Save(dir); err != nil {
				t.Error(err)
			}
		}
	}
}
