package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
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
	"syscall"
	"time"
)

//go:embed testdata/internal
var added embed.FS // the file that the copy has and the product has not

// A suite is a test program of one package, with faults in it.
type suite struct {
	root, folder string
	dir          string // for the copy
	faults       []numbered
	refused      int           // faults that do not compile
	most         time.Duration // that a run may take
	flags        []string      // of the test program
}

func (s *suite) program() string { return filepath.Join(s.dir, "suite.test") }

// newSuite plants the faults and builds the tests. It leaves out faults that do not compile.
func newSuite(ctx context.Context, root, folder, dir string, faults []fault) (*suite, error) {
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
			return s, s.measure(ctx)
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

// measure runs the tests without a fault.
func (s *suite) measure(ctx context.Context) error {
	s.most = 5 * time.Minute
	start := time.Now()
	out, err := s.run(ctx, 0)
	if err != nil {
		return fmt.Errorf("the tests of %s fail without a fault: %w\n%s", s.folder, err, out)
	}
	s.most = 10*time.Second + 4*time.Since(start)
	return nil
}

// run runs the tests with one fault; 0: without a fault.
func (s *suite) run(ctx context.Context, n int) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.most, errHung)
	defer cancel()
	temp, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	test := exec.CommandContext(ctx, s.program(), s.flags...)
	test.Dir = filepath.Join(s.root, s.folder)
	test.Env = append(os.Environ(), fmt.Sprintf("LEAFLAB_MUTANT=%d", n), "TMPDIR="+temp)
	test.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	test.Cancel = func() error { return syscall.Kill(-test.Process.Pid, syscall.SIGKILL) }
	test.WaitDelay = time.Second
	out, err := test.CombinedOutput()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return out, err
}

var errHung = errors.New("the tests do not end")

// An outcome is how the tests took a fault.
type outcome struct {
	fault
	err error // nil: not noticed
}

// try runs the tests once for each fault, several at a time, until the time is over.
func (s *suite) try(ctx context.Context, at time.Duration, workers int) (all []outcome) {
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
				_, err := s.run(ctx, f.n)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				all = append(all, outcome{f.fault, err})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}
