package bench_test

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/snowflake"
)

// TestUIDFullSpeed takes IDs as fast as it can, 50 million of them in the lab, by 1, 2, 4
// and 8 callers, and compares all.
func TestUIDFullSpeed(t *testing.T) {
	n := 1_000_000
	if os.Getenv("LEAF_LAB") != "" {
		n = 50_000_000
	}
	for _, callers := range []int{1, 2, 4, 8} {
		ids, err := bench.NewCached(bench.UIDWide, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([][]int64, callers)
		for i := range seen {
			seen[i] = make([]int64, 0, n/callers)
		}
		runtime.GC()
		began := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { seen[i] = takeWithin(t, ids, seen[i], n/callers) })
		}
		wg.Wait()
		took := time.Since(began)
		distinctSlots(t, seen, n)
		t.Logf("%d callers: %d IDs in %v, %.1f million/s", callers, n, took.Round(time.Millisecond), float64(n)/took.Seconds()/1e6)
	}
}

// takeWithin appends n IDs to seen and checks that they are positive and at most a minute ahead of
// the clock.
func takeWithin(t *testing.T, ids *snowflake.Generator, seen []int64, n int) []int64 {
	for i := range n {
		id, err := ids.Next(t.Context())
		if err != nil {
			t.Error(err)
			return seen
		}
		seen = append(seen, id)
		if i%4096 == 4095 || i == n-1 {
			checkBlock(t, seen[i&^4095:])
		}
	}
	return seen
}

// checkBlock reports IDs that are not positive or are more than a minute ahead of the clock. It
// compares with the end of the block, a few microseconds after their issue.
func checkBlock(t *testing.T, ids []int64) {
	last := bench.UIDWide.TickAt(time.Now().Add(time.Minute))
	for _, id := range ids {
		if tick := id >> (bench.UIDWide.WorkerBits + bench.UIDWide.SequenceBits); id <= 0 || tick > last {
			t.Errorf("ID %d: second %d, the last one allowed is %d", id, tick, last)
			return
		}
	}
}

// distinctSlots compares all IDs by a bit for each that there could be.
func distinctSlots(t *testing.T, seen [][]int64, want int) {
	t.Helper()
	least := slices.Min(seen[0])
	for _, ids := range seen {
		least = min(least, slices.Min(ids))
	}
	slot := func(id int64) int64 { return id>>32<<22 | id&(1<<22-1) }
	base := slot(least) &^ (1<<22 - 1)
	bits := make([]uint64, 62<<22/64)
	count := 0
	for _, ids := range seen {
		for _, id := range ids {
			at := slot(id) - base
			if bits[at/64]&(1<<(at%64)) != 0 {
				t.Fatalf("ID %d twice", id)
			}
			bits[at/64] |= 1 << (at % 64)
			count++
		}
	}
	if count != want {
		t.Errorf("%d IDs, want %d", count, want)
	}
}
