package ticket_test

import (
	"testing"

	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/segment"
)

// BenchmarkAdvance draws from three servers on this machine, durable as they come.
func BenchmarkAdvance(b *testing.B) {
	for name, layout := range map[string]ticket.Layout{"tickets": {}, "blocks": {Stride: 1_000_000}} {
		b.Run(name, func(b *testing.B) {
			s := newSet(b, shared[:]...)
			if err := initTickets(b.Context(), s.servers(b), layout, []segment.Tag{order}); err != nil {
				b.Fatal(err)
			}
			store := open(b, s.servers(b), layout, patient)
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := store.Advance(b.Context(), "order", 1000); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grants/s")
		})
	}
}
