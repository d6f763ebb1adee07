package drivertest_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
)

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		ranges []leaf.Range
		want   string // in the error of Check
		whole  string // in the error of CheckExactly [1, 10)
	}{
		{"none", nil, "", "up to 1"},
		{"all", []leaf.Range{{Start: 5, End: 10}, {Start: 1, End: 5}}, "", ""},
		{"a gap", []leaf.Range{{Start: 6, End: 10}, {Start: 1, End: 5}}, "", "5 was next"},
		{"too few", []leaf.Range{{Start: 1, End: 9}}, "", "up to 9"},
		{"too many", []leaf.Range{{Start: 1, End: 11}}, "", "up to 11"},
		{"one ID twice", []leaf.Range{{Start: 4, End: 10}, {Start: 1, End: 5}}, "[1, 5) and [4, 10)", "twice"},
		{"the same twice", []leaf.Range{{Start: 1, End: 5}, {Start: 1, End: 5}}, "[1, 5) and [1, 5)", "twice"},
		{"one within", []leaf.Range{{Start: 1, End: 10}, {Start: 3, End: 4}}, "[1, 10) and [3, 4) overlap (1 of 10 IDs", "twice"},
		{"empty", []leaf.Range{{Start: 1, End: 10}, {Start: 3, End: 3}}, "[3, 3) is not a range", "is not a range"},
		{"negative", []leaf.Range{{Start: -1, End: 10}}, "is not a range", "is not a range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r drivertest.Ranges
			r.Add(c.ranges...)
			says(t, "Check", r.Check(), c.want)
			says(t, "CheckExactly", r.CheckExactly(leaf.Range{Start: 1, End: 10}), c.whole)
		})
	}
}

// says checks that err is nil, or has the expected text.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s says %v, want %q", what, err, want)
	}
}

func TestRangesConcurrently(t *testing.T) {
	var r drivertest.Ranges
	var wg sync.WaitGroup
	for i := range int64(50) {
		wg.Go(func() { r.Add(leaf.Range{Start: i * 10, End: i*10 + 10}) })
	}
	wg.Wait()
	if err := r.CheckExactly(leaf.Range{Start: 0, End: 500}); err != nil || r.Count() != 500 {
		t.Errorf("%d IDs, %v", r.Count(), err)
	}
}

func TestIDs(t *testing.T) {
	var ids drivertest.IDs
	says(t, "no IDs", ids.Check(), "")
	a, b := ids.Shard(), ids.Shard()
	a.Add(3, 1)
	a.AddRange(leaf.Range{Start: 10, End: 20})
	b.Add(2, 0, 9, 20)
	says(t, "different IDs", ids.Check(), "")
	b.Add(15)
	a.Add(2)
	b.Add(15)
	if n := ids.Count(); n != 19 {
		t.Errorf("count is %d, want 19", n)
	}
	says(t, "duplicates", ids.Check(), "3 of 19 IDs were issued before, the lowest of them 2")
}

// BenchmarkIDs checks a million IDs in the order of eight goroutines with a common counter.
func BenchmarkIDs(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		var ids drivertest.IDs
		shards := make([]*drivertest.IDShard, 8)
		for i := range shards {
			shards[i] = ids.Shard()
		}
		for id := range int64(n) {
			shards[rand.IntN(len(shards))].Add(id)
		}
		if err := ids.Check(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/ID")
}
