package bench_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/bench"
)

// BenchmarkNext calls each Go row from all goroutines. A call of "take" takes 1000 IDs.
func BenchmarkNext(b *testing.B) {
	for _, r := range bench.Rows {
		if r.Open == nil {
			continue
		}
		b.Run(r.Key, func(b *testing.B) {
			of, err := r.Open()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				ids, ctx := of(), b.Context()
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

// Rows of numbers hand out each ID once, those of many IDs the first one of each call.
func TestRows(t *testing.T) {
	for _, r := range bench.Rows {
		if r.Open == nil || isText(r.Key) {
			continue
		}
		t.Run(r.Key, func(t *testing.T) {
			of, err := r.Open()
			if err != nil {
				t.Fatal(err)
			}
			everyIDOnce(t, of, 4, 600_000)
		})
	}
}

func isText(key string) bool {
	return slices.Contains([]string{"xid", "ulid", "ksuid", "uuid4", "uuid7"}, key)
}

// everyIDOnce has callers take IDs at the same time, each as many as it gets in a second at
// most, and compares all of them.
func everyIDOnce(t *testing.T, of func() bench.Source, callers, each int) {
	t.Helper()
	seen := make([][]int64, callers)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		ids := of()
		wg.Go(func() {
			for len(seen[i]) < each && time.Since(began) < time.Second {
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
	if got := len(slices.Compact(slices.Clone(all))); got != len(all) || got == 0 {
		t.Errorf("%d distinct IDs out of %d", got, len(all))
	}
}
