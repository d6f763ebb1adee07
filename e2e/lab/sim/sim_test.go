package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run the schedule of this seed alone, and print it")
	kindFlag      = flag.String("kind", "", "run schedules of this kind alone: tags or leases")
	schedulesFlag = flag.Int("schedules", 0, "how many schedules of each kind to run (default 50, with LEAF_LAB set 20000)")
)

// A scenario is a world that is made from a seed, and runs in a bubble.
type scenario interface {
	run()
	check() error
	base() *world
}

func (w *world) base() *world { return w }

var kinds = map[string]func(seed uint64, sabotage string) scenario{
	"tags":   func(seed uint64, sabotage string) scenario { return newTagWorld(seed, sabotage) },
	"leases": func(seed uint64, sabotage string) scenario { return newLeaseWorld(seed, sabotage) },
}

// play runs one schedule and checks what happened in it.
func play(t *testing.T, kind string, seed uint64, sabotage string) (*world, error) {
	var s scenario
	synctest.Test(t, func(*testing.T) {
		s = kinds[kind](seed, sabotage)
		s.run()
	})
	return s.base(), s.check()
}

func schedules() int {
	switch {
	case *schedulesFlag > 0:
		return *schedulesFlag
	case os.Getenv("LEAF_LAB") != "":
		return 20000
	}
	return 50
}

func TestSchedules(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if *kindFlag != "" && kind != *kindFlag {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			if *seedFlag != 0 {
				w, err := play(t, kind, *seedFlag, "")
				if t.Log(describe(w, err)); err != nil {
					t.Fail()
				}
				return
			}
			seeds, base := knownSeeds(t, kind), uint64(time.Now().UnixNano())
			for i := range schedules() {
				seeds = append(seeds, base+uint64(i))
			}
			playAll(t, kind, seeds)
		})
	}
}

// knownSeeds returns the seeds in testdata/seeds, each of which has found something.
func knownSeeds(t *testing.T, kind string) (seeds []uint64) {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var of string
		var seed uint64
		if n, _ := fmt.Sscan(line, &of, &seed); n == 2 && of == kind {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// playAll runs schedules, as many at once as there are processors, up to the first that
// fails.
func playAll(t *testing.T, kind string, seeds []uint64) {
	begin := time.Now()
	var next, ids, failed, faults, virtual atomic.Int64
	t.Run("schedules", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for {
					i := int(next.Add(1)) - 1
					if i >= len(seeds) {
						return
					}
					w, err := play(t, kind, seeds[i], "")
					if err != nil {
						next.Store(int64(len(seeds)))
						t.Fatalf("%s\nreplay: go test ./lab/sim -run Schedules -kind %s -seed %d", describe(w, err), kind, seeds[i])
					}
					n, f := w.history.Count()
					ids.Add(n)
					failed.Add(f)
					faults.Add(w.faults.Load())
					virtual.Add(int64(w.well))
				}
			})
		}
	})
	if !t.Failed() {
		t.Logf("%d schedules in %v, %v of virtual time: %d IDs, %d failed calls, %d faults of the network; no duplicate",
			len(seeds), time.Since(begin).Round(time.Millisecond), time.Duration(virtual.Load()).Round(time.Second),
			ids.Load(), failed.Load(), faults.Load())
	}
}

func describe(w *world, err error) string {
	ids, failed := w.history.Count()
	return fmt.Sprintf("seed %d: %d IDs, %d failed calls: %v\n%s", w.seed, ids, failed, err, strings.Join(w.happens, "\n"))
}
