package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// benchmark runs a benchmark of the package above, which logs its table.
func benchmark(name string) func(context.Context, *lab) (report, error) {
	return goTest("-run", "^$", "-bench", name, "-benchtime", "500ms")
}

// test runs a test of the package above that logs a table where LEAF_LAB is set.
func test(name string) func(context.Context, *lab) (report, error) {
	return goTest("-run", "^"+name+"$")
}

func goTest(args ...string) func(context.Context, *lab) (report, error) {
	return func(ctx context.Context, l *lab) (report, error) {
		cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-v", "-count=1", "-timeout", "20m"}, append(args, ".")...)...)
		cmd.Dir = filepath.Join(l.root, "bench")
		cmd.Env = append(os.Environ(), "LEAF_LAB=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return report{}, fmt.Errorf("%w\n%s", err, out)
		}
		var table strings.Builder
		for line := range strings.Lines(string(out)) {
			if row := strings.TrimSpace(line); strings.HasPrefix(row, "|") {
				table.WriteString(row + "\n")
			}
		}
		if table.Len() == 0 {
			return report{}, fmt.Errorf("no table was printed\n%s", out)
		}
		return report{table: table.String()}, nil
	}
}
