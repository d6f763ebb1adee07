package client_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

// benchmarkClient returns a client whose stock outlasts a benchmark.
func benchmarkClient(b *testing.B) *client.Client {
	const stock = 1 << 40
	store := memory.New().Store()
	if err := store.Create(context.Background(), segment.Tag{Name: "order", MaxID: 1, Step: segment.MaxStep}); err != nil {
		b.Fatal(err)
	}
	server := testleaf.Start(b, testleaf.Options{Store: store, Segment: segment.SetOptions{Options: segment.Options{MaxStock: stock}}})
	ids := connect(b, &client.Options{MaxStock: stock}, server)
	if _, err := ids.Next(b.Context(), "order"); err != nil {
		b.Fatal(err)
	}
	return ids
}

// alternate runs two loops in turn, so that both have the same machine, and reports how many
// times as long as the first one the second one takes.
func alternate(b *testing.B, base, loop func()) {
	var took [2]time.Duration
	for b.Loop() {
		for i, run := range []func(){base, loop} {
			begun := time.Now()
			run()
			took[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "of-atomic-add")
}

const turn = 100_000 // IDs of a goroutine

func adds(counter *atomic.Int64) {
	for range turn {
		counter.Add(1)
	}
}

// At most three times an atomic add, on one goroutine.
func BenchmarkNext(b *testing.B) {
	var counter atomic.Int64
	ids, ctx := benchmarkClient(b), b.Context()
	alternate(b, func() { adds(&counter) }, func() {
		for range turn {
			if _, err := ids.Next(ctx, "order"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTagNext(b *testing.B) {
	var counter atomic.Int64
	g, ctx := benchmarkClient(b).Tag("order"), b.Context()
	alternate(b, func() { adds(&counter) }, func() {
		for range turn {
			if _, err := g.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// At most 0.3 of atomic adds to one counter, on all cores.
func BenchmarkCursor(b *testing.B) {
	var counter atomic.Int64
	ids, ctx := benchmarkClient(b), b.Context()
	cursors := make([]*segment.Cursor, runtime.GOMAXPROCS(0))
	for i := range cursors {
		cursors[i] = ids.Cursor("order", 0)
	}
	alternate(b, func() { onAllCores(func(int) { adds(&counter) }) }, func() {
		onAllCores(func(core int) {
			cursor := cursors[core]
			for range turn {
				if _, err := cursor.Next(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func onAllCores(loop func(core int)) {
	var all sync.WaitGroup
	for core := range runtime.GOMAXPROCS(0) {
		all.Go(func() { loop(core) })
	}
	all.Wait()
}
