package client_test

import (
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/client"
)

// benchmarkClient returns a client that has stock.
func benchmarkClient(b *testing.B) *client.Client {
	url, stop := exampleServer()
	b.Cleanup(stop)
	ids, err := client.New(url, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ids.Close(b.Context()) }) // the benchmark has ended
	for range 20_000 {
		if _, err := ids.Next(b.Context(), "order"); err != nil {
			b.Fatal(err)
		}
	}
	return ids
}

func BenchmarkAtomicAdd(b *testing.B) {
	var n atomic.Int64
	for b.Loop() {
		n.Add(1)
	}
}

func BenchmarkAtomicAddContended(b *testing.B) {
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Add(1)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	ids, ctx := benchmarkClient(b), b.Context()
	for b.Loop() {
		if _, err := ids.Next(ctx, "order"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTagNext(b *testing.B) {
	g, ctx := benchmarkClient(b).Tag("order"), b.Context()
	for b.Loop() {
		if _, err := g.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCursor(b *testing.B) {
	ids, ctx := benchmarkClient(b), b.Context()
	b.RunParallel(func(pb *testing.PB) {
		cursor := ids.Cursor("order", 0)
		for pb.Next() {
			if _, err := cursor.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
