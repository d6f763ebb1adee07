//go:build leafsabotage

package saboteurs

import (
	"context"
	_ "embed"
	"errors"
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
			if got.Sign = sign(out, err); got.Sign == "" {
				t.Errorf("%s of %s do not notice it: %v\n%s", e.tests, e.folder, err, out)
			} else {
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

// failureSigns are what failed tests print, the most telling first.
var failureSigns = []*regexp.Regexp{regexp.MustCompile(`\w+_test\.go:\d+: .*|panic: .*|fatal error: .*`), regexp.MustCompile(`--- FAIL: .*`)}

// sign is what the tests noticed; empty: nothing, or they were ended before.
func sign(out []byte, err error) string {
	if err == nil {
		return ""
	}
	for _, s := range failureSigns {
		if found := s.Find(out); found != nil {
			return string(found)
		}
	}
	return ""
}

// Tests that were killed, or could not run, have noticed nothing.
func TestSign(t *testing.T) {
	failed := errors.New("exit status 1")
	for _, c := range []struct {
		out  string
		err  error
		want string
	}{
		{"ok", nil, ""}, {"", failed, ""}, {"warning: no tests to run", failed, ""},
		{"--- FAIL: TestA (0.0s)\n    a_test.go:7: got 1\n", failed, "a_test.go:7: got 1"},
		{"--- FAIL: TestA (0.0s)\n    help.go:7: got 1\n", failed, "--- FAIL: TestA (0.0s)"},
		{"panic: test timed out after 30s\n", failed, "panic: test timed out after 30s"},
	} {
		if got := sign([]byte(c.out), c.err); got != c.want {
			t.Errorf("%q, %v: got %q, want %q", c.out, c.err, got, c.want)
		}
	}
}

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
