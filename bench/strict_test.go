package bench_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// strictCallers are how many callers want an ID of one tag at the same time.
var strictCallers = []int{1, 64, 1024}

const strictTag = "strict"

// BenchmarkStrict measures IDs of a tag with strict order beside the store's own round trips, which
// are allocations by one caller for a usual tag, and logs them as a table at its end.
func BenchmarkStrict(b *testing.B) {
	var table strings.Builder
	table.WriteString("\n| store | round trips/s | IDs/s (a round trip): 1 caller | 64 callers | 1,024 callers |" +
		" p50 / p99 in ms: 1 caller | 64 | 1,024 |\n|---|---|---|---|---|---|---|---|\n")
	for _, e := range engines {
		if e.name == "file" || strings.HasPrefix(e.name, "ticket") {
			continue // no strict order
		}
		b.Run(e.name, func(b *testing.B) {
			s := e.open(b)
			set := strictSet(b, s)
			var trips figure
			b.Run("round-trips", func(b *testing.B) { trips = measure(b, s, 1, false) })
			got := make([]figure, len(strictCallers))
			for i, callers := range strictCallers {
				b.Run(fmt.Sprint(callers), func(b *testing.B) { got[i] = measureStrict(b, set, callers) })
			}
			fmt.Fprintf(&table, "| %s | %.0f |", e.name, trips.perSecond)
			for _, f := range got {
				fmt.Fprintf(&table, " %.0f (%.2f) |", f.perSecond, f.perSecond/trips.perSecond)
			}
			for _, f := range got {
				fmt.Fprintf(&table, " %.1f / %.1f |", f.p50.Seconds()*1000, f.p99.Seconds()*1000)
			}
			table.WriteString("\n")
		})
	}
	b.Log(table.String())
}

// strictSet returns a set with a tag of strict order. Some of these stores can lose writes.
func strictSet(tb testing.TB, s advancer) *segment.Set {
	tb.Helper()
	tag := segment.Tag{Name: strictTag, MaxID: 1, Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrictLossy}}
	if err := s.(segment.Catalog).Create(tb.Context(), tag); err != nil {
		tb.Fatal(err)
	}
	set := segment.NewSet(s.(segment.Store), &segment.SetOptions{Options: segment.Options{Wait: time.Minute}})
	if _, err := set.Next(tb.Context(), strictTag); err != nil {
		tb.Fatal(err)
	}
	return set
}

// measureStrict has callers take b.N IDs one by one, together. Each caller's IDs ascend.
func measureStrict(b *testing.B, set *segment.Set, callers int) figure {
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	everyCaller(callers, func(int) {
		last := int64(0)
		for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
			began := time.Now()
			id, err := set.Next(b.Context(), strictTag)
			if took[n-1] = time.Since(began); err != nil || id <= last {
				b.Errorf("%d after %d, %v", id, last, err)
			}
			last = id
		}
	})
	b.StopTimer()
	slices.Sort(took)
	f := figure{float64(b.N) / b.Elapsed().Seconds(), took[len(took)/2], took[len(took)*99/100]}
	b.ReportMetric(f.perSecond, "IDs/s")
	return f
}
