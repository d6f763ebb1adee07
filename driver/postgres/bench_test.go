package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

const benchCallers = 32

func benchTags() []segment.Tag {
	var tags []segment.Tag
	for i := range benchCallers {
		tags = append(tags, segment.Tag{Name: fmt.Sprint("tag-", i), Step: 1000})
	}
	return tags
}

// BenchmarkAdvance measures durable allocations, each caller with a tag of its own. Its
// server syncs, which that of the tests does not.
func BenchmarkAdvance(b *testing.B) {
	server := testserver.Postgres(b, nil)
	db := postgresDB(b, server.URL(server.NewDatabase(b)))
	if err := initStore(b.Context(), db, benchTags()); err != nil {
		b.Fatal(err)
	}
	s := openPostgres(b, db)
	for _, callers := range []int{1, benchCallers} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var caller atomic.Int64
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				tag := fmt.Sprint("tag-", caller.Add(1)%benchCallers)
				for pb.Next() {
					if _, err := s.Advance(b.Context(), tag, 1000); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
