package mysql_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// countUp raises the term of worker 7 by one, and returns 0 if that failed or may
// have failed.
func countUp(ctx context.Context, r worker.Registry) (int64, error) {
	old, err := r.Load(ctx, 7)
	if err != nil {
		return 0, err
	}
	next := worker.Record{Worker: 7, Instance: worker.NewInstance(), Term: old.Term + 1}
	if err := r.Swap(ctx, old, next); err != nil {
		return 0, err
	}
	return next.Term, nil
}

// terms collects who won which term.
type terms struct {
	mu   sync.Mutex
	wins map[int64]int
	last int64
}

func (w *terms) add(t *testing.T, term int64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wins == nil {
		w.wins = make(map[int64]int)
	}
	w.wins[term]++
	w.last = max(w.last, term)
	if w.wins[term] > 1 {
		t.Errorf("term %d was won twice", term)
	}
}

// A server that is killed at its work keeps every swap that it acknowledged.
func TestMySQLRegistryKilledServer(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	database := server.NewDatabase(t)
	cfg := mysqlConfig(t, server, database)
	if err := initRegistry(t.Context(), mysqlDB(t, cfg)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var won terms
	var served atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		r := mysqlRegistryOf(t, cfg)
		wg.Go(func() {
			for ctx.Err() == nil {
				if term, err := countUp(ctx, r); err == nil {
					won.add(t, term)
					served.Add(1)
				}
			}
		})
	}
	for range 2 {
		await(t, &served, served.Load()+100)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	await(t, &served, served.Load()+100)
	stop()
	wg.Wait()
	if got, err := mysqlRegistryOf(t, cfg).Load(t.Context(), 7); err != nil || got.Term < won.last {
		t.Errorf("the cell stands at term %d, %v, although term %d was won", got.Term, err, won.last)
	}
}
