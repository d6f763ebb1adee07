//go:build leafsabotage

package saboteurs

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
)

//go:embed edges.txt
var edges string

// An edge is a fault in front of the generators: in an event loop, TLS, a protocol or the client; and
// the tests of a package to notice it.
type edge struct{ fault, folder, tests string }

// readEdges reads lines such as "loop drain: internal/server/conns TestShutdown".
func readEdges(text string) (all []edge, err error) {
	for line := range strings.Lines(text) {
		fault, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		folder, tests, ok := strings.Cut(rest, " ")
		if !ok {
			return nil, fmt.Errorf("edges.txt: %q names no test", line)
		}
		all = append(all, edge{fault, folder, tests})
	}
	return all, nil
}

// The named tests notice each fault of the edge, and pass without it.
func TestEdges(t *testing.T) {
	all, err := readEdges(edges)
	if err != nil {
		t.Fatal(err)
	}
	root, overlay := copyOf(t)
	parent := t // whose folder outlives each fault
	programs, whole := map[string]string{}, map[edge]bool{}
	for _, e := range all {
		t.Run(e.fault, func(t *testing.T) {
			if programs[e.folder] == "" {
				programs[e.folder] = buildTests(parent, root, overlay, e.folder)
			}
			if without := (edge{"", e.folder, e.tests}); !whole[without] {
				if out, err := without.run(t, root, programs[e.folder]); err != nil {
					t.Fatalf("without a fault: %v\n%s", err, out)
				}
				whole[without] = true
			}
			begun := time.Now()
			out, err := e.run(t, root, programs[e.folder])
			got := labcheck.Saboteur{Rule: e.fault, What: "a fault of the edge", Kind: e.folder + " " + e.tests, Schedules: 1, Took: time.Since(begun)}
			if err == nil {
				t.Errorf("%s of %s do not notice it", e.tests, e.folder)
			} else {
				got.Sign = string(firstFailure.Find(out))
				t.Logf("noticed after %v: %s", got.Took.Round(time.Millisecond), got.Sign)
			}
			if dir := os.Getenv("LEAF_REPORT"); dir != "" {
				if err := got.Save(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

var firstFailure = regexp.MustCompile(`\w+_test\.go:\d+: .*|panic: .*`)

// run runs the tests with the fault.
func (e edge) run(t *testing.T, root, program string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tests := exec.CommandContext(ctx, program, "-test.short", "-test.count=1", "-test.failfast", "-test.timeout=30s", "-test.run="+e.tests)
	tests.Dir = filepath.Join(root, filepath.FromSlash(e.folder))
	tests.Env = append(os.Environ(), "LEAFLAB_SABOTAGE="+e.fault)
	tests.WaitDelay = 10 * time.Second
	return tests.CombinedOutput()
}
