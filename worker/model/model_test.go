// Package model_test checks the lease protocol of package worker with the model checker
// Spin: the models lease.pml, loss.pml, generator.pml and pool.pml have no error, and without any
// one of their safety rules an ID is issued twice.
//
//	go test -v -run Model ./worker/model
//
// prints the shortest way there for every rule.
package model_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

const (
	maxEvents = 30     // of a counterexample that people can still read
	maxDepth  = "5000" // steps; no run of a model is nearly as long
	memory    = "2048" // megabytes for one run of the checker
)

// A setup is a model with some of its macros set.
type setup struct {
	name    string
	model   string
	defines string // as in "TICKS=3 SWAP_COMPARES=0"
}

// quick lists one setup of each model that Spin searches to the end within seconds.
var quick = []setup{
	{"quick/lease", "lease", "TICKS=2 LIVES0=1 LIVES1=1 CLAIMS=2"},
	{"quick/loss", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"quick/generator", "generator", "TICKS=1 LEASES=2 CALLS=1"},
	{"quick/pool", "pool", "TICKS=2 TTL=1 CLAIMS=2"},
}

// complete lists the larger ones, for make test-all. No setup has an error.
//
// TERM_BUMP is the one rule that safety does not need: the instance alone makes a
// claim unlike all others.
var complete = []setup{
	{"lease/three ticks", "lease", "TICKS=3 LIVES0=2 LIVES1=1"},
	{"lease/three lives of a disk", "lease", "TICKS=2 LIVES0=3 LIVES1=1"},
	{"lease/without a file", "lease", "TICKS=2 LIVES0=2 LIVES1=0 FILELESS=1"},
	{"lease/two late swaps", "lease", "TICKS=2 LIVES0=2 LIVES1=1 FLIGHT=2"},
	{"lease/same term", "lease", "TICKS=2 LIVES0=2 LIVES1=1 TERM_BUMP=0"},
	{"loss/one fail-over", "loss", "TICKS=4 DELAY=1 HORIZON=2"},
	{"loss/two fail-overs", "loss", "TICKS=3 DELAY=1 HORIZON=2 EPOCHS=3"},
	{"loss/starts from the file", "loss", "TICKS=3 DELAY=1 HORIZON=2 LIVES=2"},
	{"loss/switch-back", "loss", "TICKS=2 DELAY=1 HORIZON=2 EPOCHS=3 SWITCH_BACK=1"},
	{"loss/clocks off", "loss", "TICKS=3 DELAY=1 HORIZON=2 TOLERANCE=1"},
	{"loss/an extension under way", "loss", "TICKS=3 DELAY=1 HORIZON=2 SENT=1"},
	{"loss/a claim under way", "loss", "TICKS=2 DELAY=1 HORIZON=2 LOST=1"},
	{"loss/a pause within an extension", "loss", "TICKS=2 DELAY=1 HORIZON=1 TOLERANCE=1 PAUSED=1"},
	{"loss/an untracked fail-over", "loss", "TICKS=3 DELAY=1 HORIZON=2 UNTRACKED=1"},
	{"generator", "generator", "TICKS=2 LEASES=2 CALLS=1"},
	{"pool/a fail-over", "pool", "TICKS=3 TTL=1 CLAIMS=2 LOSSY=1"},
}

// completeLab lists what takes minutes.
var completeLab = []setup{
	{"lab/lease/four ticks", "lease", "TICKS=4 LIVES0=2 LIVES1=1"},
	{"lab/lease/three lives of a disk", "lease", "TICKS=3 LIVES0=3 LIVES1=1"},
	{"lab/lease/two lives of the copy", "lease", "TICKS=2 LIVES0=2 LIVES1=2"},
	{"lab/lease/without a file", "lease", "TICKS=2 LIVES0=2 LIVES1=1 FILELESS=1"},
	{"lab/lease/two late swaps", "lease", "TICKS=3 LIVES0=2 LIVES1=1 FLIGHT=2"},
	{"lab/lease/claiming again", "lease", "TICKS=2 LIVES0=2 LIVES1=1 CLAIMS=2"},
	{"lab/loss/long horizon", "loss", "TICKS=5 DELAY=2 HORIZON=4"},
	{"lab/loss/short horizon", "loss", "TICKS=3 DELAY=1 HORIZON=1 LIVES=2"},
	{"lab/loss/two fail-overs", "loss", "TICKS=4 DELAY=2 HORIZON=3 EPOCHS=3"},
	{"lab/loss/switch-back, two lives", "loss", "TICKS=2 DELAY=1 HORIZON=2 EPOCHS=3 LIVES=2 SWITCH_BACK=1"},
	{"lab/loss/three nodes", "loss", "TICKS=3 DELAY=1 HORIZON=2 NODES=3"},
	{"lab/loss/clocks off, two lives", "loss", "TICKS=3 DELAY=1 HORIZON=2 TOLERANCE=1 LIVES=2"},
	{"lab/loss/an extension under way, two fail-overs", "loss", "TICKS=2 DELAY=1 HORIZON=2 EPOCHS=3 SENT=1"},
	{"lab/loss/an extension under way, two lives", "loss", "TICKS=2 DELAY=1 HORIZON=2 LIVES=2 SENT=1"},
	{"lab/loss/a claim under way", "loss", "TICKS=3 DELAY=1 HORIZON=2 LOST=1"},
	{"lab/loss/a claim under way, two fail-overs", "loss", "TICKS=2 DELAY=1 HORIZON=2 EPOCHS=3 LOST=1"},
	{"lab/loss/a pause within an extension", "loss", "TICKS=3 DELAY=1 HORIZON=2 TOLERANCE=1 PAUSED=1"},
	{"lab/loss/a pause, and a server's clock is set", "loss", "TICKS=3 DELAY=1 HORIZON=1 TOLERANCE=1 PAUSED=1 SLOW_FIRST=1"},
	{"lab/loss/an untracked fail-over", "loss", "TICKS=4 DELAY=1 HORIZON=2 UNTRACKED=1"},
	{"lab/pool/hangs, crashes, a backup", "pool", "TICKS=3 TTL=1 CLAIMS=2"},
	{"lab/generator/three ticks", "generator", "TICKS=3 LEASES=2 CALLS=1"},
	{"lab/generator/two calls each", "generator", "TICKS=2 LEASES=2 CALLS=2"},
}

// broken lists each rule with bounds that suffice for a counterexample without it.
var broken = []setup{
	{"MARK_BEFORE_USE", "lease", "TICKS=2 LIVES0=2 LIVES1=0"},
	{"MARK_ONLY_GROWS", "lease", "TICKS=2 LIVES0=3 LIVES1=0"},
	{"FILE_BEFORE_FIRST_TICK", "lease", "TICKS=2 LIVES0=2 LIVES1=0"},
	{"SEAL_BEFORE_RELEASE", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"VOID_BEFORE_RELEASE", "lease", "TICKS=2 LIVES0=2 LIVES1=1"},
	{"VOID_BEFORE_HAND_BACK", "lease", "TICKS=2 LIVES0=3 LIVES1=1"},
	{"RELEASE_ABOVE_LAST", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"FLOOR_IS_OLD_HORIZON", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"SWAP_COMPARES", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"PERMANENT_RECORDS", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"FRESH_INSTANCE", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"PROOF_IDENTITY", "lease", "TICKS=2 LIVES0=1 LIVES1=1"},
	{"PROOF_LOCK", "lease", "TICKS=2 LIVES0=2 LIVES1=0"},
	{"HAND_BACK_OWN", "lease", "TICKS=2 LIVES0=2 LIVES1=1"},
	{"CLAIM_WAITS", "loss", "TICKS=3 DELAY=2 HORIZON=3 EPOCHS=3"},
	{"FLOOR_ALWAYS", "loss", "TICKS=3 DELAY=1 HORIZON=2 TOLERANCE=1"},
	{"STAMP_NAMES_EPOCH", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"GAP_ENDS_EPOCH", "loss", "TICKS=3 DELAY=1 HORIZON=2 UNTRACKED=1"},
	{"LATEST_STAMP", "loss", "TICKS=3 DELAY=1 HORIZON=2 UNTRACKED=1"},
	{"START_IN_INCARNATION", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"CLOCK_NOT_BEFORE", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"STAMP_BY_RIGHT_CLOCK", "loss", "TICKS=3 DELAY=1 HORIZON=2 TOLERANCE=1"},
	{"LOOK_AFTER_SWAP", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"LOOK_FINDS_CLAIM", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"FOUND_CLAIM_WAITS", "loss", "TICKS=2 DELAY=1 HORIZON=2 LOST=1"},
	{"ONE_DELAY", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"EXTEND_BEFORE_HORIZON", "loss", "TICKS=3 DELAY=1 HORIZON=1"},
	{"ANSWER_BEFORE_HORIZON", "loss", "TICKS=3 DELAY=1 HORIZON=2 SENT=1"},
	{"OTHER_CLOCK_COUNTS", "loss", "TICKS=2 DELAY=1 HORIZON=1 TOLERANCE=1 PAUSED=1"},
	{"ASKED_AGAIN", "loss", "TICKS=2 DELAY=1 HORIZON=1 TOLERANCE=1 PAUSED=1"},
	{"ASKED_AFTER_ANSWER", "loss", "TICKS=3 DELAY=1 HORIZON=1 TOLERANCE=1 PAUSED=1 SLOW_FIRST=1"},
	{"LATE_SWAP_COMPARES", "loss", "TICKS=5 DELAY=3 HORIZON=3 EPOCHS=1 SENT=1"},
	{"ALONE_WITHIN_DELAY", "loss", "TICKS=3 DELAY=1 HORIZON=3 LIVES=2"},
	{"ALONE_HEARD_IN_TIME", "loss", "TICKS=2 DELAY=1 HORIZON=2 EPOCHS=3 LIVES=2 SWITCH_BACK=1"},
	{"ALONE_PUTS_NOTHING_BACK", "loss", "TICKS=3 DELAY=1 HORIZON=1 LIVES=2"},
	{"HEARD_IN_TIME", "loss", "TICKS=3 DELAY=1 HORIZON=2"},
	{"CURSOR_SWAP", "generator", "TICKS=2"},
	{"EVERY_GENERATOR", "generator", "TICKS=2"},
	{"ONE_OBJECT", "generator", "TICKS=2"},
	{"FRESH_SECRET", "pool", "TICKS=4 TTL=1 CLAIMS=2"},
	{"FLOOR_IS_OLD_HORIZON", "pool", "TICKS=4 TTL=2 CLAIMS=2 FLOOR_IS_NOW=0"},
	{"FLOOR_IS_NOW", "pool", "TICKS=4 TTL=1 CLAIMS=2"},
	{"RENEWAL_NAMES_SECRET", "pool", "TICKS=4 TTL=1 CLAIMS=2"},
	{"RENEWAL_WRITES", "pool", "TICKS=3 TTL=2 CLAIMS=2"},
	{"SECOND_SWAP", "pool", "TICKS=3 TTL=2 CLAIMS=2"},
	{"NEVER_LOWER", "pool", "TICKS=4 TTL=2 CLAIMS=2"},
	{"RENEWED_IN_TIME", "pool", "TICKS=3 TTL=1 CLAIMS=2"},
	{"RENEWED_IN_EPOCH", "pool", "TICKS=3 TTL=2 CLAIMS=2 LOSSY=1 TOLERANCE=1"},
	{"SEAL_BEFORE_RELEASE", "pool", "TICKS=4 TTL=2 CLAIMS=2"},
	{"RELEASE_ABOVE_USED", "pool", "TICKS=4 TTL=2 CLAIMS=2"},
	{"RELEASE_ABOVE_FLOOR", "pool", "TICKS=3 TTL=1 CLAIMS=3 FLOOR_IS_NOW=0"},
	{"TIME_IN_ID", "pool", "TICKS=4 TTL=1 CLAIMS=2"},
	{"FLOOR_AFTER_LOSS", "pool", "TICKS=4 TTL=2 CLAIMS=2 LOSSY=1"},
	{"DELAY_COVERS_TTL", "pool", "TICKS=4 TTL=2 CLAIMS=2 LOSSY=1 TOLERANCE=1"},
	{"EPOCH_AFTER_SWAP", "pool", "TICKS=4 TTL=1 CLAIMS=2 LOSSY=1"},
}

var issuedTwice = regexp.MustCompile(`assertion violated\s+!\(issued`)

// atOnce bounds how many checkers run at the same time.
var atOnce = make(chan struct{}, 2)

func TestModelHasNoError(t *testing.T) {
	setups := quick
	if !testing.Short() {
		setups = append(setups, complete...)
	}
	if os.Getenv("LEAF_LAB") != "" {
		setups = append(setups, completeLab...)
	}
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir, out := check(t, s, "-O1", "-DCOLLAPSE") // smaller, a little slower
			if !strings.Contains(out, "errors: 0") {
				t.Fatalf("%s is wrong:\n%s\n%s", s.name, out, strings.Join(events(t, dir, s), "\n"))
			}
			t.Logf("%s: %s", s.defines, figures(out))
		})
	}
}

func TestModelNeedsEachRule(t *testing.T) {
	testserver.Long(t)
	for _, s := range broken {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.defines += " " + s.name + "=0"
			dir, out := check(t, s, "-O0", "-DBFS") // breadth first finds a shortest one, before -O2 has been compiled
			if !strings.Contains(out, "errors: 1") || !issuedTwice.MatchString(out) {
				t.Fatalf("without %s no tick is issued twice:\n%s", s.name, out)
			}
			steps := events(t, dir, s)
			t.Logf("without %s:\n%s", s.name, strings.Join(steps, "\n"))
			if len(steps) == 0 || len(steps) > maxEvents {
				t.Errorf("a counterexample of %d events, want 1 to %d", len(steps), maxEvents)
			}
		})
	}
}

// TestModelRules keeps the list of rules in step with the models.
func TestModelRules(t *testing.T) {
	rule := regexp.MustCompile(`\*/\n#ifndef ([A-Z_]+)`) // the bounds have no comment
	tested := make(map[string]bool)
	for _, s := range broken {
		tested[s.model+" "+s.name] = true
	}
	tested["lease TERM_BUMP"] = true // is not needed
	for _, model := range []string{"lease", "loss", "generator", "pool"} {
		text, err := os.ReadFile(model + ".pml")
		if err != nil {
			t.Fatal(err)
		}
		_, rules, _ := strings.Cut(string(text), "/* ")
		for _, m := range rule.FindAllStringSubmatch(rules, -1) {
			if !tested[model+" "+m[1]] {
				t.Errorf("%s.pml: no test takes out %s", model, m[1])
			}
		}
	}
}

// check searches all states of a setup. It returns Spin's folder and report, and fails the test if
// Spin gave up the search.
func check(t *testing.T, s setup, flags ...string) (dir, out string) {
	t.Helper()
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	dir = t.TempDir()
	text, err := os.ReadFile(s.model + ".pml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, s.model+".pml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "spin", append(s.macros(), "-a", s.model+".pml")...)
	command(t, dir, "gcc", append(flags, "-w", "-DSAFETY", "-DMEMLIM="+memory, "-o", "pan", "pan.c")...)
	out = command(t, dir, filepath.Join(dir, "pan"), "-m"+maxDepth)
	wrong := []string{"max search depth too small", "truncated", "MEMLIM bound", "out of memory"}
	if !strings.Contains(out, "errors: 1") {
		wrong = append(wrong, "Search not completed")
	}
	for _, w := range wrong {
		if strings.Contains(out, w) {
			t.Fatalf("%s: the search was not complete:\n%s", s.name, out)
		}
	}
	return dir, out
}

// events returns the steps to the error.
func events(t *testing.T, dir string, s setup) []string {
	t.Helper()
	out := command(t, dir, "spin", append(s.macros(), "-t", "-T", s.model+".pml")...)
	out, _, _ = strings.Cut(out, "spin: ")
	return strings.Split(strings.TrimSpace(out), "\n")
}

// macros returns the defines as arguments.
func (s setup) macros() []string {
	var args []string
	for d := range strings.FieldsSeq(s.defines) {
		args = append(args, "-D"+d)
	}
	return args
}

// command runs a program in dir and returns its output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: the models need the Debian packages spin and gcc (apt-get install spin gcc libc6-dev)", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

var (
	stored  = regexp.MustCompile(`(\d+) states, stored`)
	reached = regexp.MustCompile(`depth reached (\d+)`)
	elapsed = regexp.MustCompile(`elapsed time (\S+) seconds`)
	used    = regexp.MustCompile(`(\S+)\s+total actual memory usage`)
)

// figures shortens a report to one line.
func figures(out string) string {
	find := func(re *regexp.Regexp) string {
		if m := re.FindStringSubmatch(out); m != nil {
			return m[1]
		}
		return "?"
	}
	return fmt.Sprintf("%s states, depth %s, %s s, %s MB", find(stored), find(reached), find(elapsed), find(used))
}
