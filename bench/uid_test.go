package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// uidWide has 4,194,304 IDs a second, about what uid-generator's cached mode was seen to
// issue on such a machine.
var uidWide = snowflake.Layout{Epoch: time.Unix(1463673600, 0), Tick: time.Second, TimeBits: 31, WorkerBits: 10, SequenceBits: 22}

// newCached returns what `leaf serve` has for uid in cached mode.
func newCached(tb testing.TB, layout snowflake.Layout, ahead time.Duration) *snowflake.Generator {
	tb.Helper()
	ids, err := snowflake.New(layout, &snowflake.Options{
		MaxAhead: ahead, Wait: 3 * time.Second, Reserve: snowflake.Reserve{Size: (layout.MaxSequence() + 1) << 3},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ids.Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
	return ids
}

// BenchmarkUIDNext is uid-generator's cached mode at full speed, borrowing on, beside a bare
// atomic add.
func BenchmarkUIDNext(b *testing.B) {
	for _, callers := range []int{1, 2, 4, 8} {
		for _, s := range []struct {
			name string
			ids  source
		}{{"atomic", new(counter)}, {"cached", newCached(b, uidWide, 1000*time.Hour)}} {
			b.Run(fmt.Sprintf("%s/callers=%d", s.name, callers), func(b *testing.B) { shared(b, s.ids, callers, b.N) })
		}
	}
}

// shared has callers take n IDs together.
func shared(tb testing.TB, ids source, callers, n int) {
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range (n + i) / callers {
				if _, err := ids.Next(tb.Context()); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestUIDFullSpeed takes IDs as fast as it can, 50 million of them in the lab, by 1, 2, 4
// and 8 callers, compares all, and reports the time beside that of a bare atomic add.
func TestUIDFullSpeed(t *testing.T) {
	n := 1_000_000
	if os.Getenv("LEAF_LAB") != "" {
		n = 50_000_000
	}
	for _, callers := range []int{1, 2, 4, 8} {
		ids := newCached(t, uidWide, time.Minute)
		seen := make([][]int64, callers)
		for i := range seen {
			seen[i] = make([]int64, 0, n/callers)
		}
		runtime.GC()
		began := time.Now()
		shared(t, new(counter), callers, n)
		floor := time.Since(began)
		began = time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { seen[i] = takeWithin(t, ids, seen[i], n/callers) })
		}
		wg.Wait()
		took := time.Since(began)
		distinctSlots(t, seen, n)
		t.Logf("%d callers: %d IDs in %v, %.1f million/s, %.2f times the atomic add's %v", callers, n, took.Round(time.Millisecond),
			float64(n)/took.Seconds()/1e6, took.Seconds()/floor.Seconds(), floor.Round(time.Millisecond))
	}
}

// takeWithin appends n IDs to seen, all of which must be positive and at most a minute
// ahead of the clock.
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

// checkBlock reports IDs that are not positive or more than a minute ahead of the clock,
// which is that of the end of the block: a few microseconds later than their issue.
func checkBlock(t *testing.T, ids []int64) {
	last := uidWide.TickAt(time.Now().Add(time.Minute))
	for _, id := range ids {
		if tick := id >> (uidWide.WorkerBits + uidWide.SequenceBits); id <= 0 || tick > last {
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
