package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed testdata/internal
var added embed.FS // the file that the copy has and the product has not

// A suite is a test program of one package, with faults in it.
type suite struct {
	root, folder string
	dir          string // for the copy
	faults       []numbered
	refused      int      // faults that do not compile
	flags        []string // of the test program
	tests        []*test  // the fastest first
}

func (s *suite) program() string { return filepath.Join(s.dir, "suite.test") }

// newSuite plants the faults and builds the tests. It leaves out faults that do not compile.
func newSuite(ctx context.Context, root, folder, dir string, faults []fault, workers int) (*suite, error) {
	s := &suite{root: root, folder: folder, dir: dir}
	for i, f := range faults {
		s.faults = append(s.faults, numbered{f, i + 1})
	}
	for {
		overlay, err := s.overlay()
		if err != nil {
			return nil, err
		}
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-gcflags=-e", "-o", s.program(), "./"+folder)
		build.Dir = root
		out, err := build.CombinedOutput()
		if err == nil {
			s.setFlags(ctx)
			return s, s.measure(ctx, workers)
		}
		before := len(s.faults)
		s.leaveOut(string(out))
		if len(s.faults) == before {
			return nil, fmt.Errorf("build the mutants of %s: %w\n%s", folder, err, out)
		}
	}
}

// overlay writes the copy.
func (s *suite) overlay() (string, error) {
	replace := map[string]string{}
	write := func(name, text string) error {
		copied := filepath.Join(s.dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(name)))
		replace[name] = copied
		return os.WriteFile(copied, []byte(text), 0o600)
	}
	byFile := map[string][]numbered{}
	for _, f := range s.faults {
		byFile[f.file] = append(byFile[f.file], f)
	}
	for name, faults := range byFile {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if err := write(name, mutate(string(text), faults)); err != nil {
			return "", err
		}
	}
	const runtime = "internal/mutant/mutant.go"
	text, err := fs.ReadFile(added, "testdata/"+runtime)
	if err != nil {
		return "", err
	}
	if err := write(filepath.Join(s.root, runtime), string(text)); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

var compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// leaveOut removes the faults at the lines that the compiler complains about.
func (s *suite) leaveOut(complaints string) {
	for _, m := range compileError.FindAllStringSubmatch(complaints, -1) {
		name := filepath.Base(m[1])
		name = name[strings.Index(name, "-")+1:]
		line, _ := strconv.Atoi(m[2])
		before := len(s.faults)
		s.faults = slices.DeleteFunc(s.faults, func(f numbered) bool { return filepath.Base(f.file) == name && f.line == line })
		s.refused += before - len(s.faults)
	}
}

// setFlags has rapid keep its failures out of the repository, where tests use it.
func (s *suite) setFlags(ctx context.Context) {
	const quiet = "-rapid.nofailfile"
	s.flags = []string{"-test.short", "-test.failfast", "-test.count=1", "-test.timeout=0"}
	help, _ := exec.CommandContext(ctx, s.program(), "-help").CombinedOutput() // it fails, as always
	if strings.Contains(string(help), quiet) {
		s.flags = append(s.flags, quiet)
	}
}

// An outcome is how the tests took a fault.
type outcome struct {
	fault
	err error // nil: not noticed
}

// try runs the tests for each fault, several at a time, until the time is over. It reports one outcome
// after the other.
func (s *suite) try(ctx context.Context, at time.Duration, workers int, report func(outcome)) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, over := 0, time.Now().Add(at)
	take := func() (numbered, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(s.faults) || ctx.Err() != nil || time.Now().After(over) {
			return numbered{}, false
		}
		next++
		return s.faults[next-1], true
	}
	for range workers {
		wg.Go(func() {
			for f, ok := take(); ok; f, ok = take() {
				err := s.tryOne(ctx, f)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				report(outcome{f.fault, err})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
