package sim

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"
)

var processFlag = flag.Int("process", -1, "the number of this process, of several that run schedules at the same time")

// slice is for how long the lab plays the schedules of a kind before it goes on with the next kind.
const slice = 50 * time.Second

// alone reports whether this process has to play all schedules itself.
func alone() bool {
	return os.Getenv("LEAF_LAB") == "" || *seedFlag != 0 || *schedulesFlag > 0 || *processFlag >= 0
}

// inProcesses runs the test in one process for each processor. So the goroutines of a schedule stay on
// theirs, and need not wake another one.
func inProcesses(t *testing.T) {
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSchedules$", "-test.v", "-test.timeout=0", "-kind="+*kindFlag, "-process="+strconv.Itoa(i))
			run.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
			out, err := run.CombinedOutput()
			if t.Logf("%s", out); err != nil {
				t.Error(err)
			}
		})
	}
}

// rounds is how often the lab plays each kind in the time that LEAF_FOR allows.
func rounds(allowed string) int {
	most, _ := time.ParseDuration(allowed)
	return max(1, int(most/(slice*time.Duration(len(kinds)))))
}

// firstSeed differs from the first seeds of all other runs, also of the processes beside this one.
func firstSeed(begin time.Time) uint64 {
	return uint64(begin.UnixNano()) + uint64(max(*processFlag, 0))<<32
}

func TestRounds(t *testing.T) {
	for allowed, want := range map[string]int{"": 1, "1m": 1, "1h": 10, "24m": 4} {
		if got := rounds(allowed); got != want {
			t.Errorf("%d rounds fit into %q, want %d", got, allowed, want)
		}
	}
}

// Processes that begin at the same time play no schedule twice.
func TestFirstSeeds(t *testing.T) {
	seen, begin := map[uint64]bool{}, time.Now()
	defer func(own int) { *processFlag = own }(*processFlag)
	for *processFlag = range 64 {
		seen[firstSeed(begin)>>32] = true
	}
	if len(seen) != 64 {
		t.Errorf("64 processes begin in %d places", len(seen))
	}
}
