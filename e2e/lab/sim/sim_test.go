package sim

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/e2e/lab"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run the schedule of this seed alone, and print it")
	kindFlag      = flag.String("kind", "", "run schedules of this kind alone: tags, relays, leases, losses, lifts, lapses or pools")
	schedulesFlag = flag.Int("schedules", 0, "how many schedules of each kind to run (default 30, with LEAF_LAB set for 50 seconds, again and again until LEAF_FOR, such as 1h, is over)")
)

// A scenario is a world made from a seed, and runs in a bubble.
type scenario interface {
	run()
	check() error
	base() *world
}

func (w *world) base() *world { return w }

var kinds = map[string]func(seed uint64, sabotage string) scenario{
	"tags":   func(seed uint64, sabotage string) scenario { return newTagWorld(seed, sabotage) },
	"leases": func(seed uint64, sabotage string) scenario { return newLeaseWorld(seed, sabotage) },
	"relays": func(seed uint64, sabotage string) scenario { return newRelayWorld(seed, sabotage) },
	"pools":  func(seed uint64, sabotage string) scenario { return newPoolWorld(seed, sabotage) },
	"losses": func(seed uint64, sabotage string) scenario { return newLossWorld(seed, sabotage) },
	"lapses": func(seed uint64, sabotage string) scenario { return newLapseWorld(seed, sabotage) },
	"lifts":  func(seed uint64, sabotage string) scenario { return newLiftWorld(seed, sabotage) },
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

// schedules says how many schedules of each kind are run, and for how long at most.
func schedules() (n int, limit time.Duration) {
	switch {
	case *schedulesFlag > 0:
		return *schedulesFlag, time.Hour
	case os.Getenv("LEAF_LAB") != "":
		return math.MaxInt32, slice
	}
	if testing.Short() {
		return 10, 3 * time.Second
	}
	return 30, 10 * time.Second
}

func TestSchedules(t *testing.T) {
	if !alone() {
		inProcesses(t)
		return
	}
	for range rounds(os.Getenv("LEAF_FOR")) {
		testKinds(t)
	}
}

func testKinds(t *testing.T) {
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
			playAll(t, kind)
		})
	}
}

// playAll runs schedules, up to one that fails.
func playAll(t *testing.T, kind string) {
	var mu sync.Mutex
	begin := time.Now()
	sum := lab.Schedules{Kind: kind, First: firstSeed(begin)}
	n, limit := schedules()
	inParallel(t, func(t *testing.T, i int) bool {
		seed := sum.First + uint64(i)
		if i >= n || time.Since(begin) > limit {
			return false
		}
		w, err := play(t, kind, seed, "")
		mu.Lock()
		defer mu.Unlock()
		sum.Last = max(sum.Last, seed)
		add(&sum, w)
		if err != nil {
			sum.Error = err.Error()
			t.Error(keep(t, os.Getenv("LEAF_REPORT"), kind, w, err))
		}
		return err == nil
	})
	sum.Took = time.Since(begin)
	if dir := os.Getenv("LEAF_REPORT"); dir != "" {
		if err := sum.Save(dir); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d schedules in %v, %v of virtual time: %d answered calls, %d IDs, %d failed calls, %d faults; %d of %d searches for an order undecided", sum.Schedules,
		sum.Took.Round(time.Millisecond), sum.Virtual.Round(time.Second), sum.Answered, sum.IDs, sum.Failed, sum.Faults, sum.Undecided, sum.Searches)
	if sum.Undecided*100 > max(sum.Searches, 100) { // few searches may have one
		t.Errorf("%d of %d searches for an order are undecided: more than one of a hundred", sum.Undecided, sum.Searches)
	}
}

// add adds what happened in a schedule.
func add(sum *lab.Schedules, w *world) {
	ids, failed := w.history.Count()
	sum.Schedules++
	sum.Answered += w.history.Answered()
	sum.IDs += ids
	sum.Failed += failed
	sum.Faults += w.faults.Load() + w.steps
	sum.Virtual += w.well
	sum.Searches += w.searches
	sum.Undecided += w.undecided
}

// inParallel calls do with 0, 1, … on all processors until it returns false.
func inParallel(t *testing.T, do func(t *testing.T, i int) bool) {
	var next atomic.Int64
	var over atomic.Bool
	t.Run("schedules", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for !over.Load() {
					if !do(t, int(next.Add(1))-1) {
						over.Store(true)
					}
				}
			})
		}
	})
}

func describe(w *world, err error) string {
	ids, failed := w.history.Count()
	return fmt.Sprintf("seed %d: %d IDs, %d failed calls: %v\n%s", w.seed, ids, failed, err, strings.Join(w.happens, "\n"))
}

// keep saves the log of a failed schedule in the report's folder, or a new one, and prints the path
// and the command for a replay.
func keep(t *testing.T, dir, kind string, w *world, err error) string {
	t.Helper()
	text := describe(w, err)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "leaf-lab-"); err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(dir, fmt.Sprintf("%s-%d.txt", kind, w.seed))
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%s\nkept in %s\nreplay: go test ./lab/sim -run Schedules -v -kind %s -seed %d", text, file, kind, w.seed)
}
