package sqltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

const benchCallers = 32

// BenchTags returns a tag for each caller of a benchmark.
func BenchTags() []segment.Tag {
	var tags []segment.Tag
	for i := range benchCallers {
		tags = append(tags, segment.Tag{Name: fmt.Sprint("tag-", i), Step: 1000})
	}
	return tags
}

// An Advancer is the subject of a benchmark.
type Advancer interface {
	Advance(ctx context.Context, tag string, n int64) (segment.Grant, error)
}

// Benchmark measures durable allocations of one caller, and of many with a tag each, in
// [BenchTags].
func Benchmark(b *testing.B, s Advancer) {
	for _, callers := range []int{1, benchCallers} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmark(b, s, callers) })
	}
}

func benchmark(b *testing.B, s Advancer, callers int) {
	advance := func(caller int) {
		if _, err := s.Advance(b.Context(), fmt.Sprint("tag-", caller), 1000); err != nil {
			b.Error(err)
		}
	}
	for i := range callers {
		advance(i) // makes the connections
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				advance(i)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
