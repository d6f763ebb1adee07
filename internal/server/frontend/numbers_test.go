package frontend_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// The numbers are those that fmt writes, and the size is known before.
func TestAppendIDs(t *testing.T) {
	check := func(ranges ...leaf.Range) {
		t.Helper()
		var want []string
		for _, r := range ranges {
			for n := r.Start; n < r.End; n++ {
				want = append(want, fmt.Sprintf("%q", fmt.Sprint(n)))
			}
		}
		got := frontend.AppendIDs(nil, ranges)
		if text := `{"ids":[` + strings.Join(want, ",") + "]}\n"; string(got) != text {
			t.Fatalf("%v: %s, want %s", ranges, got, text)
		}
		if size := frontend.IDsSize(ranges); size != len(got) {
			t.Fatalf("%v: %d bytes, want %d", ranges, size, len(got))
		}
		got = frontend.AppendRanges(nil, ranges)
		if size := frontend.RangesSize(ranges); size != len(got) {
			t.Fatalf("%v: %d bytes of ranges, want %d", ranges, size, len(got))
		}
	}
	check(leaf.Range{Start: 0, End: 1234})
	check(leaf.Range{Start: -3, End: 12})
	check(leaf.Range{Start: 5, End: 5}, leaf.Range{Start: 99_990, End: 100_210}, leaf.Range{Start: 7, End: 8})
	check(leaf.Range{Start: math.MaxInt64 - 250, End: math.MaxInt64})
	for range 1000 {
		start := rand.Int64() >> rand.IntN(63)
		check(leaf.Range{Start: start, End: start + min(rand.Int64N(300), math.MaxInt64-start)}, leaf.Range{Start: start / 7, End: start/7 + 1})
	}
}

func BenchmarkAppendIDs(b *testing.B) {
	for _, start := range []int64{123_456_789, 1 << 60} {
		b.Run(fmt.Sprint(start), func(b *testing.B) {
			ranges := []leaf.Range{{Start: start, End: start + 1000}}
			buf := make([]byte, 0, 32<<10)
			for b.Loop() {
				buf = frontend.AppendIDs(buf[:0], ranges)
			}
		})
	}
}
