// Mutants plants faults of one token or one statement in a copy of the code, and names those that
// the tests of their package do not notice:
//
//	go run ./lab/mutants -seed 7 -n 100 -for 3m segment worker
//
// Run it in the folder e2e. A test program has many faults, and an environment variable switches one
// of them on: one build of a package tries them all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

// folders are the packages that decide which IDs come.
var folders = []string{"segment", "worker", "snowflake", "driver/kv", "client", "internal/server/respapi", "internal/server/fastlane", "internal/server/conns", "internal/leafconn"}

func main() {
	log.SetFlags(0)
	seed := flag.Uint64("seed", uint64(time.Now().Unix()), "choose the faults by this number")
	most := flag.Int("n", 100, "plant so many in each package; 0: all")
	long := flag.Duration("for", 10*time.Minute, "try the faults of one package for at most so long")
	workers := flag.Int("p", runtime.NumCPU(), "run so many tests at a time")
	match := regexp.MustCompile("")
	flag.TextVar(match, "match", match, "plant only faults whose text matches this regular expression")
	again := flag.String("again", "", "plant only the unnoticed faults in this file, the output of an earlier run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := filepath.Abs("..")
	if err != nil {
		log.Fatal(err)
	}
	chosen := flag.Args()
	if len(chosen) == 0 {
		chosen = folders
	}
	r := runner{root: root, seed: *seed, most: *most, long: *long, workers: *workers, match: match}
	if *again != "" {
		if r.again, err = unnoticedIn(*again); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("mutants: seed %d\n", *seed)
	rows, err := r.all(ctx, chosen)
	fmt.Printf("\n%s", table(rows))
	if err != nil {
		log.Fatal(err)
	}
}

type runner struct {
	root    string
	seed    uint64
	most    int
	long    time.Duration
	workers int
	match   *regexp.Regexp
	again   map[string]bool // nil: all faults
}

const notNoticed, notRun, outdated = "not noticed: ", "not run: ", "noticed, though explained: "

// unnoticedIn returns the keys of the unnoticed faults in the output of an earlier run.
func unnoticedIn(name string) (map[string]bool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		for _, prefix := range []string{notNoticed, notRun} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				_, key, _ := strings.Cut(strings.TrimPrefix(rest, "line "), ": ")
				keys[strings.TrimSpace(key)] = true
			}
		}
	}
	return keys, nil
}

// A row is the result of one package.
type row struct {
	folder                    string
	all, tried, hung, refused int
	unnoticed, unrun, equal   []string
	outdated                  []string // noticed, though explained.txt says that no test can
}

func (r *runner) all(ctx context.Context, chosen []string) (rows []row, err error) {
	known, err := readExplained(explained)
	if err != nil {
		return nil, err
	}
	for _, folder := range chosen {
		row, err := r.one(ctx, folder, known)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// one tries the faults of one package.
func (r *runner) one(ctx context.Context, folder string, known map[string]string) (row, error) {
	faults, err := find(ctx, r.root, folder)
	if err != nil {
		return row{}, err
	}
	result := row{folder: folder, all: len(faults)}
	dir, err := os.MkdirTemp("", "leaf-mutants-")
	if err != nil {
		return row{}, err
	}
	defer os.RemoveAll(dir)
	s, err := newSuite(ctx, r.root, folder, dir, r.sample(faults), r.workers)
	if err != nil {
		return row{}, err
	}
	result.refused = s.refused
	s.try(ctx, r.long, r.workers, func(o outcome) { result.count(o, known[o.key] != "") })
	fmt.Printf("%s: %d of %d faults tried, %d not noticed, %d not run\n", folder, result.tried, result.all, len(result.unnoticed), len(result.unrun))
	return result, ctx.Err()
}

// count adds an outcome, and prints it if somebody has to read it.
func (r *row) count(o outcome, explained bool) {
	r.tried++
	says, list := "", &r.equal
	switch unrun := errors.Is(o.err, errUnrun); {
	case o.err != nil && !unrun:
		if errors.Is(o.err, errHung) {
			r.hung++
		}
		if !explained {
			return
		}
		says, list = outdated, &r.outdated
	case explained:
	case unrun:
		says, list = notRun, &r.unrun
	default:
		says, list = notNoticed, &r.unnoticed
	}
	*list = append(*list, o.key)
	if says != "" {
		fmt.Printf("%sline %d: %s\n", says, o.line, o.key)
	}
}

// sample chooses faults by the seed.
func (r *runner) sample(faults []fault) []fault {
	some := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		return !r.match.MatchString(f.key) || r.again != nil && !r.again[f.key]
	})
	rng := rand.New(rand.NewPCG(r.seed, 0))
	rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	if r.most > 0 && len(some) > r.most {
		some = some[:r.most]
	}
	return some
}

// find returns all faults that can be planted in a package.
func find(ctx context.Context, root, folder string) ([]fault, error) {
	loaded, err := packages.Load(&packages.Config{Context: ctx, Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, "./"+folder)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		return nil, fmt.Errorf("read the package in %s: %v", folder, loaded[0].Errors)
	}
	return candidates(root, loaded[0], func(name string) (string, error) {
		text, err := os.ReadFile(name)
		return string(text), err
	})
}
