package bench_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// strictCallers are how many callers want an ID of one tag at the same time.
var strictCallers = []int{1, 64, 1024}

const strictTag = "strict"

// TestStrictRate measures IDs of a tag with strict order beside the store's own round trips, which
// are allocations by one caller for a usual tag. They take turns, round by round, and a ratio is
// formed within each round: both meet the same load of the machine. With LEAF_LAB it logs a table of
// all stores.
func TestStrictRate(t *testing.T) {
	rounds, slice, some := 7, 200*time.Millisecond, engines[1:]
	if os.Getenv("LEAF_LAB") == "" {
		rounds, slice, some = 1, 20*time.Millisecond, engines[1:2]
	}
	var table strings.Builder
	table.WriteString("\n| store | round trips/s | IDs/s (a round trip): 1 caller | 64 callers | 1,024 callers |" +
		" p50 / p99 in ms: 1 caller | 64 | 1,024 |\n|---|---|---|---|---|---|---|---|\n")
	for _, e := range some {
		if strings.HasPrefix(e.name, "ticket") {
			continue // no strict order
		}
		t.Run(e.name, func(t *testing.T) { table.WriteString(strictRow(t, e.name, e.open(t), rounds, slice)) })
	}
	t.Log(table.String())
}

// strictRow measures one store.
func strictRow(t *testing.T, name string, s advancer, rounds int, slice time.Duration) string {
	set := strictSet(t, s)
	var trips []float64
	rates, shares := make([][]float64, len(strictCallers)), make([][]float64, len(strictCallers))
	took := make([][]time.Duration, len(strictCallers))
	for range rounds {
		trip, _ := during(t, slice, 1, func(ctx context.Context) (int64, error) {
			g, err := s.Advance(ctx, benchTag(0), 1000)
			return g.Range.Start, err
		})
		trips = append(trips, trip)
		for i, callers := range strictCallers {
			rate, each := during(t, slice, callers, func(ctx context.Context) (int64, error) { return set.Next(ctx, strictTag) })
			rates[i], shares[i], took[i] = append(rates[i], rate), append(shares[i], rate/trip), append(took[i], each...)
		}
	}
	var row strings.Builder
	row.WriteString(fmt.Sprintf("| %s | %.0f |", name, middle(trips)))
	for i := range strictCallers {
		row.WriteString(fmt.Sprintf(" %.0f (%.2f) |", middle(rates[i]), middle(shares[i])))
	}
	for _, each := range took {
		slices.Sort(each)
		row.WriteString(fmt.Sprintf(" %.1f / %.1f |", each[len(each)/2].Seconds()*1000, each[len(each)*99/100].Seconds()*1000))
	}
	return row.String() + "\n"
}

// strictSet returns a set with a tag of strict order. Some of these stores can lose writes.
func strictSet(t *testing.T, s advancer) *segment.Set {
	t.Helper()
	tag := segment.Tag{Name: strictTag, MaxID: 1, Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrictLossy}}
	if err := s.(segment.Catalog).Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(s.(segment.Store), &segment.SetOptions{Options: segment.Options{Wait: time.Minute}})
	if _, err := set.Next(t.Context(), strictTag); err != nil {
		t.Fatal(err)
	}
	return set
}

// during has callers take IDs for a time, and returns how many they took in a second and how long
// each took. The IDs of a caller ascend.
func during(t *testing.T, slice time.Duration, callers int, next func(context.Context) (int64, error)) (perSecond float64, took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	began := time.Now()
	everyCaller(callers, func(int) {
		var own []time.Duration
		last := int64(0)
		for len(own) == 0 || time.Since(began) < slice {
			at := time.Now()
			id, err := next(t.Context())
			if own = append(own, time.Since(at)); err != nil || id <= last {
				t.Errorf("%d after %d, %v", id, last, err)
				return
			}
			last = id
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, own...)
	})
	return float64(len(took)) / time.Since(began).Seconds(), took
}
