// Command lab measures this project beside its peers and writes what came of it into
// docs/performance.md and docs/img: `make bench`. A name runs one of the experiments.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// An experiment returns its table, and what it draws.
type experiment struct {
	name string
	run  func(context.Context, *lab) (report, error)
}

// experiments in the order in which `make bench` runs them. Some are tests and benchmarks of
// the package above.
var experiments = []experiment{
	{"peers", peers},
	{"latency", latency},
	{"footprint", footprint},
	{"fleet", test("Fleet", "TestFleet")},
	{"resp", benchmark("Redis protocol", "RESP")},
	{"stores", benchmark("Stores", "Stores")},
}

// lab is what the experiments share.
type lab struct {
	root   string // of the repository
	rounds int
	slice  time.Duration // that one row is measured for at a time
}

// A report is what an experiment found.
type report struct {
	table   string // Markdown
	picture string // SVG; "": none
}

func main() {
	l := &lab{}
	flag.StringVar(&l.root, "root", "..", "root of the repository")
	flag.IntVar(&l.rounds, "rounds", 5, "interleaved rounds of each figure")
	flag.DurationVar(&l.slice, "slice", 100*time.Millisecond, "duration of one measurement")
	flag.Parse()
	if err := run(context.Background(), l, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run does the named experiments, all if there are none.
func run(ctx context.Context, l *lab, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(experiments, func(e experiment) bool { return e.name == name }) {
			return fmt.Errorf("there is no experiment %q", name)
		}
	}
	for _, e := range experiments {
		if len(names) > 0 && !slices.Contains(names, e.name) {
			continue
		}
		began := time.Now()
		r, err := e.run(ctx, l)
		if err == nil {
			err = l.publish(e.name, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		fmt.Printf("%s (%v)\n\n%s\n", e.name, time.Since(began).Round(time.Second), r.table)
	}
	return nil
}

// publish replaces what stands between the marks of an experiment in docs/performance.md.
func (l *lab) publish(name string, r report) error {
	text := fmt.Sprintf("\n%s\n%s\n\n", strings.TrimSpace(r.table), l.origin())
	if r.picture != "" {
		file := "img/bench-" + name + ".svg"
		err := os.MkdirAll(filepath.Join(l.root, "docs/img"), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(l.root, "docs", file), []byte(r.picture), 0o644)
		}
		if err != nil {
			return err
		}
		text = fmt.Sprintf("\n![%s](%s)\n%s", name, file, text)
	}
	path := filepath.Join(l.root, "docs/performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- bench %s -->\n", name), fmt.Sprintf("<!-- end %s -->\n", name)
	head, rest, ok := strings.Cut(string(page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for it: %q … %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(head+begin+text+end+tail), 0o644)
}

// origin says where and when a table was made.
func (l *lab) origin() string {
	commit, err := exec.Command("git", "-C", l.root, "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("\n*Commit %s, %s, %s, %d cores (%s), load before the run %s.*", strings.TrimSpace(string(commit)),
		time.Now().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), processor(), loadAverage())
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(text), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, "\t :")
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
