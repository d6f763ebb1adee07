package redis_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// BenchmarkAdvance allocates from one tag, by 16 callers at once; p99 is that of one
// allocation.
func BenchmarkAdvance(b *testing.B) {
	for _, fsync := range []string{"always", "everysec"} {
		b.Run(fsync, func(b *testing.B) {
			server := testserver.Redis(b, &testserver.RedisOptions{Config: [][2]string{{"appendfsync", fsync}}})
			s := newStore(b, parse(b, server.URL()), order)
			var mu sync.Mutex
			var took []time.Duration
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				var mine []time.Duration
				for pb.Next() {
					begin := time.Now()
					if _, err := s.Advance(b.Context(), "order", 1); err != nil {
						b.Error(err)
						return
					}
					mine = append(mine, time.Since(begin))
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, mine...)
			})
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "allocations/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
