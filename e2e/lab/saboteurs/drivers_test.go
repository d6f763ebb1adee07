//go:build leafsabotage

package saboteurs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
)

// The suites of every driver notice a fault for each rule, and the rule notices every fault that it
// has to. Each driver may run alone: -run Drivers/driver/kv.
func TestDrivers(t *testing.T) {
	all, err := readProofs(proofs)
	if err != nil {
		t.Fatal(err)
	}
	root, overlay := copyOf(t)
	for _, d := range drivers {
		t.Run(d.folder, func(t *testing.T) {
			signs := d.prove(t, root, overlay, all)
			for _, p := range all {
				if signs[p] == "" && d.owes(p) {
					t.Errorf("%s does not notice %s", d.folder, p)
				}
			}
		})
	}
}

// prove runs the suites of a driver with one fault at a time, and returns the signs of those that
// its rules noticed.
func (d driver) prove(t *testing.T, root, overlay string, all []proof) map[proof]string {
	var lines []string
	for _, p := range all {
		if slices.Contains(d.families, p.family()) {
			lines = append(lines, p.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	program := buildTests(t, root, overlay, d.folder)
	begun := time.Now()
	suite := exec.CommandContext(ctx, program, "-test.count=1", "-test.timeout=0", "-test.run="+d.run)
	suite.Dir = filepath.Join(root, filepath.FromSlash(d.folder))
	suite.Env = append(os.Environ(), "LEAFLAB_FAULTS="+strings.Join(lines, "\n"))
	suite.Cancel = func() error { return suite.Process.Signal(os.Interrupt) }
	suite.WaitDelay = 10 * time.Second
	out, _ := suite.CombinedOutput() // a fault may also fail what cleans up
	rules, signs := readSigns(string(out))
	if len(rules) == 0 || ctx.Err() != nil {
		t.Fatalf("the suites have not run to their end: %v\n%s", ctx.Err(), out)
	}
	got := labcheck.Saboteur{Rule: d.folder, Kind: "conformance suites", Schedules: int64(len(signs)), Took: time.Since(begun)}
	noticed := map[string]bool{}
	for p, sign := range signs {
		noticed[p.rule] = true
		got.Sign = max(got.Sign, sign)
	}
	for _, rule := range rules {
		if !noticed[rule] && !d.lacks(rule) {
			t.Errorf("%s: no fault in %s shows that the rule %q can fail", d.folder, strings.Join(d.families, " or "), rule)
		}
	}
	t.Logf("%s: %d of %d rules noticed their faults in %v", d.folder, len(noticed), len(rules), got.Took.Round(time.Second))
	got.What = "a fault for each rule of the conformance suites"
	if dir := os.Getenv("LEAF_REPORT"); dir != "" {
		if err := got.Save(dir); err != nil {
			t.Error(err)
		}
	}
	return signs
}

// readSigns reads the output of the patched suites: their rules, and the signs of faults.
func readSigns(out string) (rules []string, signs map[proof]string) {
	signs = map[proof]string{}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if rule, ok := strings.CutPrefix(line, "rule: "); ok && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
		if rest, ok := strings.CutPrefix(line, "proved: "); ok {
			if part := strings.SplitN(rest, ": ", 3); len(part) == 3 && part[2] != "nothing" {
				signs[proof{part[0], part[1]}] = part[2]
			}
		}
	}
	return rules, signs
}

// copyOf plants all faults.
func copyOf(t *testing.T) (root, overlay string) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err = Overlay(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root, overlay
}

// buildTests builds the tests of a package of the copy.
func buildTests(t *testing.T, root, overlay, folder string) string {
	program := filepath.Join(t.TempDir(), "package.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+folder)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
