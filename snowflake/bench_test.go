package snowflake

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf"
)

// borrowing has more to borrow than a benchmark uses up.
var borrowing = &Options{MaxAhead: 1000 * time.Hour}

func BenchmarkNext(b *testing.B) {
	g, ctx := newHeld(b, leafLayout, borrowing), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkNextAtTheCeiling has callers sleep for want of sequence numbers: what is
// left to measure is how near to 4096 IDs a millisecond, 244 ns each, they come.
func BenchmarkNextAtTheCeiling(b *testing.B) {
	g, ctx := newHeld(b, leafLayout, &Options{MaxAhead: 10 * time.Millisecond}), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkTake reserves 1000 IDs at a time.
func BenchmarkTake(b *testing.B) {
	const n = 1000
	g, ctx := newHeld(b, leafLayout, borrowing), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var ranges []leaf.Range
		for pb.Next() {
			var err error
			if ranges, err = g.Take(ctx, ranges[:0], n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/ID")
}
