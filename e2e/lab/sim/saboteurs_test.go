//go:build leafsabotage

package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/e2e/lab"
)

// A saboteur breaks one rule of segment mode or of leases: in the product's own code, which
// asks for the name in a build of package saboteurs, or here, at an interface.
type saboteur struct {
	name, kind string
	what       string
	sign       string // the expected finding
}

const twice = "issued twice"

var saboteurs = []saboteur{
	{"CAS", "tags", "the store writes whatever it holds", twice},
	{"CAS of records", "leases", "the registry writes whatever it holds", twice},
	{"outcome", "tags", "an unknown outcome is taken for success", twice},
	{"reuse", "tags", "a range is used again after an error", twice},
	{"R1 condition", "tags", "a give-back does not ask whether others have moved the counter", twice},
	{"R1 seal", "tags", "a span's cursor is read where it has to be swapped", twice},
	{"R1 pieces", "tags", "pieces that do not touch are given back as one", twice},
	{"R2 guard", "tags", "a counter that went back is believed", twice},
	{"R2 memory", "tags", "the guard's memory does not outlive the process", twice},
	{"R2 set", "tags", "a counter is set to a value where it has to be advanced", twice},
	{"R2 issued", "tags", "the guard's memory keeps how far the counter went back, not what was issued", "false alarms"},
	{"R2 lift", "tags", "a counter is lifted to the same place by all servers with the same knowledge", twice},
	{"R2 during a lift", "lifts", "a loss of writes during a lift is not noticed", twice},
	{"R3 step", "tags", "a range is computed from the step that is read after it", twice},
	{"R4 clamp", "tags", "the counter stays at its largest value", twice},
	{"R5 missing", "tags", "a counter that is missing begins at 0", twice},
	{"observe", "tags", "what is in memory stays there when an operator tells of IDs in use", "which its server was told of"},
	{"observe cursors", "tags", "cursors keep their blocks then", "which its server was told of"},
	{"observe grants", "tags", "what the store grants meanwhile is issued", "which its server was told of"},
	{"stock", "tags", "the stock is filled to the loss budget, whatever was issued", "and had issued"},
	{"lend start", "relays", "a relay gives back what it was never lent", twice},
	{"lend version", "relays", "a relay gives back what others were lent", twice},
	{"W1 W2 mark", "leases", "times are issued though the file could not be written", twice},
	{"W2 fsync", "leases", "the file is not written through to the disk", twice},
	{"W1 next", "leases", "one ID is taken beyond the limit of the lease", "issued "}, // twice, or ahead of the clock
	{"W1 contiguous", "leases", "a run of IDs is taken beyond the limit of the lease", "issued "},
	{"W1 reserve", "leases", "a reserve is filled up beyond the limit of the lease", "issued "},
	{"W3 seal", "leases", "a generator's cursor is read where it has to be swapped", "issued "}, // twice, or behind the clock
	{"W3 file", "leases", "a release is sent before the file says so", twice},
	{"W3 every generator", "leases", "only the first generator is sealed", twice},
	{"W5 expiry", "leases", "records expire", twice},
	{"W6 instance", "leases", "claims look like each other", twice},
	{"W7 rounding", "leases", "a floor is rounded down to a tick, and a limit up", twice},
	{"W7 layouts", "leases", "layouts of one name are not compared", twice},
	{"W7 first default", "leases", "the first default layout to be recorded may be any", twice},
	{"W8 copy", "leases", "a copied state file is taken for the one it was copied from", twice},
	{"W8 lock", "leases", "two processes have one state file", twice},
	{"W11 registry", "leases", "each machine has a registry of its own", twice},
	{"W10 claim", "leases", "worker IDs are claimed whose floor is ahead of the clock", "received nothing"},
	{"W10 extension", "leases", "a lease follows a clock that is far ahead of the registry's", "beyond the registry's time"},
	{"W11 refusal", "leases", "worker IDs are claimed by a clock that is off", "by a clock that is off"},
	{"floor", "leases", "such a lease begins below that floor too", twice},
	{"unanswered claim", "leases", "a claim whose answer was lost counts once it is read", twice},
	{"unanswered extension", "leases", "a longer lease whose answer was lost counts once it is read", twice},
	{"W9 wait", "losses", "a claim counts at once", twice},
	{"W9 floor", "losses", "times below the end of the wait are issued", twice},
	{"W9 identity", "losses", "a stamp of any incarnation counts", twice},
	{"W9 name", "losses", "a server that comes back has the incarnation it had", twice},
	{"W9 clock off", "losses", "a node stamps by a clock that is off", twice},
	{"W9 look", "losses", "a claim counts by a look before its swap", twice},
	{"W9 stale look", "losses", "a claimer that was paused after its look goes up to the horizon", twice},
	{"W9 horizon", "losses", "a lease that has run out is extended", twice},
	{"W9 alone", "losses", "a start from the state file alone goes up to the horizon", twice},
	{"W9 paused claimer", "losses", "a claimer that was paused has waited meanwhile", twice},
	{"W9 own record", "losses", "a claim counts by a look that does not find it", twice},
	{"W9 clock first", "losses", "the registry is asked for its time before its incarnation", twice},
	{"W9 one delay", "losses", "each node waits as long as its own lease needs", twice},
	{"W9 agreed late", "losses", "the registry agrees to a lease from the state file after others could have had it", twice},
	{"W9 put back", "losses", "a lease from the state file is put back", twice},
	{"W9 gap", "losses", "stamps with a gap between them count, where others may have answered meanwhile", twice},
	{"W9 unmarked gap", "losses", "a server's stamps from before a gap count, if it has the name that they have", twice},
	{"W9 one clock", "lapses", "a gap between stamps is measured by the registry's clock alone", twice},
	{"W9 tolerance", "lapses", "a lease has run out by the clock of the server before alone", twice},
	{"W9 time of another", "lapses", "the time counts as that of the server before, which was asked for its incarnation", twice},
	{"W9 late answer", "lapses", "an answer with the time has taken half of the time of its question, however long that was", twice},
	{"W9 late agreement", "lapses", "an extension counts whenever the registry agrees to it", twice},
	{"W9 safe tolerance", "lapses", "a start from the state file alone takes all clocks for one", twice},
	{"W12 creation", "pools", "a claim creates the pool that a typo names", twice},
	{"W12 layout", "pools", "a claim does not compare the program's layout", "another layout"},
	{"W12 values", "pools", "a pool gets other values", "a pool's values were changed"},
	{"W12 one name", "pools", "two pools get one name", twice},
	{"W12 registry's time", "pools", "a limit is not by the registry's time", "beyond the registry's time"},
	{"W12 longest TTL", "pools", "a program gets a lease of any TTL", "beyond the registry's time"},
	{"W12 clock off", "pools", "a server whose clock is off grants leases", "whose clock is off"},
	{"W12 secret", "pools", "all leases have one secret", twice},
	{"W12 lost claim", "pools", "a claim by a holder of the same name gets the same lease", twice},
	{"W12 renewal's secret", "pools", "a renewal does not compare the secret", twice},
	{"W12 renewal writes", "pools", "a renewal is answered from what was read", twice},
	{"W12 never lower", "pools", "a renewal with a shorter TTL lowers the limit", twice},
	{"W12 unanswered renewal", "pools", "a renewal whose answer was lost counts once it is read", twice},
	{"W12 above used", "pools", "the next lease begins at the time used", twice},
	{"W12 kept floor", "pools", "a release of an unused lease goes below its floor", twice},
	{"W12 used below the limit", "pools", "a release raises the horizon", "above its limit"},
	{"W12 seal", "pools", "a program sends the release before it stops", twice},
	{"W12 claim delay", "pools", "a pool waits for less than its longest TTL", "too short"},
	{"W12 reach", "pools", "a lease outlasts the claim delay", twice},
	{"W12 floor after a loss", "pools", "a claim begins before lost leases have ended", twice},
	{"W12 floor after a restore", "pools", "a claim begins before leases that a backup does not know", twice},
	{"W12 renewed late", "pools", "a renewal after the limit counts", twice},
	{"W12 present incarnation", "pools", "a renewal counts whose record another server has written", twice},
	{"W12 incarnation after", "pools", "a claim counts by the incarnation from before its swap", twice},
	{"W12 program's clock", "pools", "a program looks at its clock, not at the time in the ID", twice},
	{"W12 fork", "pools", "a child goes on with its parent's lease", twice},
}

var recordFlag = flag.Bool("record", false, "write the schedules that notice saboteurs to testdata/saboteurs")

// Bounds of the search for a schedule that notices a saboteur. The product's own random numbers can
// make a schedule miss a saboteur that it noticed before.
const (
	mostSchedules = 3000
	repeats       = 400 // of the kept schedule, which may find the fault in one run of ten
)

// The candidates for a recorded seed, and the criterion.
const (
	candidates = 3
	replays    = 5
)

// Each broken rule leads to the fault that it prevents, mostly a duplicate ID. The kept schedule
// finds it; the full form tries the others, too.
func TestSaboteurs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the pictures of the violations
	known := knownNoticers(t)
	for _, s := range saboteurs {
		t.Run(s.name, func(t *testing.T) {
			leaf.Break(s.name)
			var got noticed
			if !*recordFlag {
				got = notice(t, s, repeats, func(int) uint64 { return known[s.name] })
				if got.seed == 0 {
					t.Errorf("%s: the kept schedule %d has not found it in %d runs: find one with -record", s.name, known[s.name], repeats)
				}
			}
			if os.Getenv("LEAF_LAB") != "" || *recordFlag {
				got = notice(t, s, mostSchedules, func(i int) uint64 { return uint64(i) + 1 })
			}
			if dir := os.Getenv("LEAF_REPORT"); dir != "" {
				if err := got.Save(dir); err != nil {
					t.Error(err)
				}
			}
			if got.seed == 0 {
				t.Fatalf("%s: not noticed in %d schedules", s.what, got.Schedules)
			}
			if *recordFlag {
				known[s.name] = best(t, s, got.seed)
				record(t, known)
			}
			t.Logf("%s: noticed by schedule %d after %d of them, in %v: %s", s.what, got.seed, got.Schedules, got.Took.Round(time.Millisecond), got.Sign)
		})
	}
}

// A noticed saboteur is one with the seed of the schedule that did.
type noticed struct {
	lab.Saboteur
	seed uint64 // 0: unknown
}

// notice runs up to most schedules until one notices.
func notice(t *testing.T, s saboteur, most int, seed func(i int) uint64) (got noticed) {
	got.Saboteur = lab.Saboteur{Rule: s.name, What: s.what, Kind: s.kind}
	begin := time.Now()
	var mu sync.Mutex
	inParallel(t, func(t *testing.T, i int) bool {
		if i >= most {
			return false
		}
		_, err := play(t, s.kind, seed(i), s.name)
		mu.Lock()
		defer mu.Unlock()
		got.Schedules++
		if !s.noticedBy(err) {
			return true
		}
		if got.seed == 0 {
			got.seed, got.Took = seed(i), time.Since(begin)
			got.Sign, _, _ = strings.Cut(err.Error(), "\n")
		}
		return false
	})
	return got
}

// best returns, of a seed that notices and some that come after it, the one that does most often.
func best(t *testing.T, s saboteur, seed uint64) (best uint64) {
	most := int64(-1)
	for range candidates {
		var hits atomic.Int64
		inParallel(t, func(t *testing.T, i int) bool {
			if i >= replays {
				return false
			}
			if _, err := play(t, s.kind, seed, s.name); s.noticedBy(err) {
				hits.Add(1)
			}
			return true
		})
		if hits.Load() > most {
			most, best = hits.Load(), seed
		}
		if most > replays/2 {
			break
		}
		from := seed + 1
		next := notice(t, s, mostSchedules, func(i int) uint64 { return from + uint64(i) })
		if seed = next.seed; seed == 0 {
			break
		}
	}
	t.Logf("schedule %d notices %d times in %d", best, most, replays)
	return best
}

// noticedBy reports whether a schedule's finding shows that the rule is broken.
func (s saboteur) noticedBy(err error) bool {
	return err != nil && strings.Contains(err.Error(), s.sign)
}

// A late answer alone proves nothing: the same schedules also find it without a saboteur, so they
// wait less for it. It counts only for rules about availability.
func TestSaboteursAreNotNoticedBySilence(t *testing.T) {
	var h lab.History
	h.Add(lab.Receipt{Client: "c0"}, leaf.Range{Start: 1, End: 2})
	silence := h.CheckSilence(0, time.Minute, time.Second)
	for _, s := range saboteurs {
		if s.noticedBy(silence) != (s.name == "W10 claim") {
			t.Errorf("%s is noticed by %q: %v", s.name, silence, s.noticedBy(silence))
		}
	}
}

const noticers = "testdata/saboteurs"

// knownNoticers returns, for each saboteur, the seed of a schedule that noticed it.
func knownNoticers(t *testing.T) map[string]uint64 {
	t.Helper()
	text, err := os.ReadFile(noticers)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		seed, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if known[name], err = strconv.ParseUint(seed, 10, 64); ok && err != nil {
			t.Errorf("%s: %v", noticers, err)
		}
	}
	return known
}

func record(t *testing.T, known map[string]uint64) {
	var lines []string
	for _, s := range saboteurs {
		if known[s.name] == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%d %s\n", known[s.name], s.name))
	}
	if err := os.WriteFile(noticers, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Error(err)
	}
}

// The files of a failed schedule describe its replay, and the replay fails again.
func TestFailureIsReplayed(t *testing.T) {
	s := saboteurs[0]
	leaf.Break("")
	fails := func(seed uint64) (*world, error) {
		for range repeats {
			if w, err := play(t, s.kind, seed, s.name); err != nil {
				return w, err
			}
		}
		t.Fatalf("schedule %d of %s fails no more", seed, s.name)
		return nil, nil
	}
	w, err := fails(notice(t, s, mostSchedules, func(i int) uint64 { return uint64(i) + 1 }).seed)
	dir := t.TempDir()
	said := keep(t, dir, s.kind, w, err)
	kept, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
	if len(kept) != 1 || !strings.Contains(said, kept[0]) {
		t.Fatalf("%q is kept, and it says:\n%s", kept, said)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(text), twice) || !strings.Contains(string(text), "all faults end") {
		t.Errorf("it is kept, with %v:\n%s", err, text)
	}
	_, command, _ := strings.Cut(said, "replay: go test ./lab/sim -run Schedules -v -kind ")
	var kind string
	var seed uint64
	if _, err := fmt.Sscanf(command, "%s -seed %d", &kind, &seed); err != nil || kind != s.kind {
		t.Fatalf("the command to replay it: %q, %v", command, err)
	}
	if _, err := fails(seed); !strings.Contains(err.Error(), twice) {
		t.Errorf("the replay finds %v", err)
	}
}
