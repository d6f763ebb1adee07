// Command lab compares this project with its peers and writes the results into docs/performance-tables.md
// and docs/img: `make bench`. A name runs one of the experiments.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
)

// An experiment measures one part, within a budget of time on a quiet machine.
type experiment struct {
	name   string
	budget time.Duration
	run    func(context.Context, *lab) (report, error)
}

// experiments lists the experiments of `make bench` in their order; together they take about 25
// minutes. Some are tests and benchmarks of the package above.
var experiments = []experiment{
	{"peers", 100 * time.Second, peers},
	{"latency", 90 * time.Second, latency},
	{"http", 110 * time.Second, httpWire},
	{"resp", 130 * time.Second, respWire},
	{"grpc", 100 * time.Second, grpcWire},
	{"v1", 130 * time.Second, batches},
	{"tls", 140 * time.Second, encrypted},
	{"floods", 90 * time.Second, underFloods},
	{"footprint", 240 * time.Second, footprint},
	{"member", 150 * time.Second, member},
	{"cluster", 70 * time.Second, test("TestClusterRate")},
	{"fleet", 120 * time.Second, test("TestFleet")},
	{"stores", 180 * time.Second, benchmark("Stores")},
	{"drivers", 130 * time.Second, benchmark("Drivers")},
	{"strict", 120 * time.Second, test("TestStrictRate")},
}

// longer lists the experiments that run only by name.
var longer = []experiment{
	{"scale", 15 * time.Minute, scale},
	{"tail", 31 * time.Minute, tails},
	{"pgo", 8 * time.Minute, profiled},
}

// everything names both.
const everything = "everything"

// allExperiments are those and these.
func allExperiments() []experiment { return slices.Concat(experiments, longer) }

// tailTime is long enough for requests that happen once in a million.
const tailTime = 30 * time.Minute

// lab is the shared state of the experiments.
type lab struct {
	root   string // of the repository
	rounds int
	slice  time.Duration // that one row is measured for at a time, in process
	load   time.Duration // the same of one run of load
	tail   time.Duration // of the experiment tail
	scale  float64       // of the numbers of tags, servers, connections and clients
	dir    string        // temporary
	binary string        // of the server; see leaf
}

// leaf builds the server's program once and returns its path.
func (l *lab) leaf(ctx context.Context) (path string, err error) {
	if l.binary == "" {
		l.binary, err = bench.Build(ctx, l.root, l.dir)
	}
	return l.binary, err
}

// A report is the result of an experiment.
type report struct {
	table   string            // Markdown
	picture string            // SVG; "": no picture
	found   map[string]result // by the key of a goal
}

func main() {
	l := &lab{}
	flag.StringVar(&l.root, "root", "..", "root of the repository")
	flag.IntVar(&l.rounds, "rounds", 5, "interleaved rounds of each figure")
	flag.DurationVar(&l.slice, "slice", 100*time.Millisecond, "duration of one measurement in process")
	flag.DurationVar(&l.load, "load", 2*time.Second, "duration of one run of load")
	flag.Float64Var(&l.scale, "scale", 1, "of the numbers of tags, servers, connections and clients in the experiment scale")
	flag.DurationVar(&l.tail, "tail", tailTime, "duration of the load in the experiment tail")
	echo := flag.Bool("echo", false, "be the bare gRPC server that gRPC is measured beside")
	constant := flag.String("constant", "", "be the net/http server that /v1 is measured beside, with the answers in `FILE`")
	secure := flag.String("tls", "", "be the bare servers with TLS that Leaf is measured beside: `CERT,KEY`")
	flood := flag.String("flood", "", "be the clients of a flood: `NUMBER@ADDRESS`")
	flag.Parse()
	err := error(nil)
	switch {
	case *echo:
		err = serveEcho()
	case *constant != "":
		err = serveConstants(*constant)
	case *secure != "":
		err = serveBare(*secure)
	case *flood != "":
		err = beFlood(*flood)
	default:
		err = run(context.Background(), l, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run runs the named experiments, or all without names.
func run(ctx context.Context, l *lab, names []string) (err error) {
	if l.root, err = filepath.Abs(l.root); err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp("", "lab"); err != nil {
		return err
	}
	defer os.RemoveAll(l.dir)
	if slices.Contains(names, everything) {
		names = experimentNames()
	}
	for _, name := range names {
		if !slices.ContainsFunc(allExperiments(), func(e experiment) bool { return e.name == name }) {
			return fmt.Errorf("there is no experiment %q: there are %s", name, strings.Join(append(experimentNames(), everything), ", "))
		}
	}
	began := time.Now()
	chosen := experiments
	if len(names) > 0 {
		chosen = slices.DeleteFunc(allExperiments(), func(e experiment) bool { return !slices.Contains(names, e.name) })
	}
	for _, e := range chosen {
		if err := l.do(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	fmt.Printf("all in %v\n", time.Since(began).Round(time.Second))
	return nil
}

func experimentNames() (names []string) {
	for _, e := range allExperiments() {
		names = append(names, e.name)
	}
	return names
}

func (l *lab) do(ctx context.Context, e experiment) error {
	began, origin := time.Now(), l.origin()
	r, err := e.run(ctx, l)
	runtime.GC() // the next one starts without the garbage of this one
	if err == nil {
		err = complete(e.name, r.found)
	}
	if err != nil {
		return err
	}
	r.table = judged(e.name, r.table, r.found)
	fmt.Printf("%s: %v of %v\n\n%s\n%s\n", e.name, time.Since(began).Round(time.Second), e.budget, r.table, goalsTable(e.name, r.found))
	if l.scale != 1 || l.tail != tailTime {
		return nil // a trial
	}
	return l.publish(e.name, r, origin)
}
