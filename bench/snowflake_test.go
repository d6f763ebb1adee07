package bench_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"

	"github.com/leaf-id/leaf"
	leafsnowflake "github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// timeSources make IDs of 41 bits of milliseconds, 10 of worker ID and 12 of sequence,
// but for the atomic add. "snowflake" borrows from the future, as it does in bursts;
// "paced" has used up what it may borrow and sleeps, bwmarrin spins: for both, 4096 IDs a
// millisecond, 244 ns each, are the format's ceiling.
var timeSources = []struct {
	name string
	open func(testing.TB) source
}{
	{"atomic", func(testing.TB) source { return new(counter) }},
	{"snowflake", func(tb testing.TB) source { return newSnowflake(tb, 1000*time.Hour) }},
	{"paced", func(tb testing.TB) source { return newSnowflake(tb, 10*time.Millisecond) }},
	{"bwmarrin", func(tb testing.TB) source { return newBwmarrin(tb) }},
}

func BenchmarkSnowflakeNext(b *testing.B) {
	for _, s := range timeSources {
		b.Run(s.name, func(b *testing.B) {
			ids, ctx := s.open(b), b.Context()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := ids.Next(ctx); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkSnowflakeTake reserves 1000 IDs at a time; ns/ID is the figure to compare
// with BenchmarkSnowflakeNext.
func BenchmarkSnowflakeTake(b *testing.B) {
	const n = 1000
	ids, ctx := newSnowflake(b, 1000*time.Hour), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var ranges []leaf.Range
		for pb.Next() {
			var err error
			if ranges, err = ids.Take(ctx, ranges[:0], n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/ID")
}

// TestTimeSources shows that what is measured does its work: every ID once.
func TestTimeSources(t *testing.T) {
	const callers, each = 4, 300_000
	for _, s := range timeSources {
		t.Run(s.name, func(t *testing.T) {
			ids, seen := s.open(t), make([][]int64, callers)
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for range each {
						id, err := ids.Next(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						seen[i] = append(seen[i], id)
					}
				})
			}
			wg.Wait()
			all := slices.Concat(seen...)
			slices.Sort(all)
			if got := len(slices.Compact(all)); got != callers*each {
				t.Errorf("%d distinct IDs out of %d", got, callers*each)
			}
		})
	}
}

func newSnowflake(tb testing.TB, ahead time.Duration) *leafsnowflake.Generator {
	tb.Helper()
	layout, _ := leafsnowflake.Preset("leaf")
	ids, err := leafsnowflake.New(layout, &leafsnowflake.Options{MaxAhead: ahead})
	if err != nil {
		tb.Fatal(err)
	}
	ids.Begin(worker.Unfenced(1, 0, worker.Forever))
	return ids
}

type bwmarrin struct{ node *snowflake.Node }

func newBwmarrin(tb testing.TB) bwmarrin {
	tb.Helper()
	node, err := snowflake.NewNode(1)
	if err != nil {
		tb.Fatal(err)
	}
	return bwmarrin{node}
}

func (b bwmarrin) Next(context.Context) (int64, error) { return b.node.Generate().Int64(), nil }
