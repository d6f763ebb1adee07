package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A test is one of a package, an example, or the seeds of a fuzz target.
type test struct {
	name    string
	took    time.Duration // without a fault
	reaches []byte        // by the number of a fault: 1 if the test runs its code
}

const (
	longestRun = 5 * time.Minute        // of a test without a fault
	firstShare = 500 * time.Millisecond // the fastest tests, which run first, take so long together
	patience   = 2 * time.Second        // for the tests of a fault, above three times their time
)

var (
	errHung  = errors.New("the tests do not end")
	errUnrun = errors.New("no test runs this code")
)

// measure runs each test without a fault, to learn how long it takes and which faults it reaches.
func (s *suite) measure(ctx context.Context, workers int) error {
	list, err := exec.CommandContext(ctx, s.program(), "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", s.folder, err)
	}
	var names []string
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(name, "Benchmark") {
			names = append(names, name)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	free := make(chan struct{}, max(1, workers))
	for _, name := range names {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			t, err := s.measureOne(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			s.tests, failed = append(s.tests, t), errors.Join(failed, err)
		})
	}
	wg.Wait()
	slices.SortFunc(s.tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	return failed
}

func (s *suite) measureOne(ctx context.Context, name string) (*test, error) {
	t := &test{name: name}
	path := filepath.Join(s.dir, name+".reached")
	last := 0
	for _, f := range s.faults {
		last = max(last, f.n)
	}
	if err := os.WriteFile(path, make([]byte, last+1), 0o600); err != nil {
		return t, err
	}
	defer os.Remove(path)
	start := time.Now()
	out, err := s.run(ctx, 0, []*test{t}, longestRun, "LEAFLAB_REACHED="+path)
	t.took = time.Since(start)
	if err != nil {
		return t, fmt.Errorf("%s of %s fails without a fault: %w\n%s", name, s.folder, err, out)
	}
	t.reaches, err = os.ReadFile(path)
	return t, err
}

// tryOne runs the tests that reach a fault, a few fast ones first.
func (s *suite) tryOne(ctx context.Context, f numbered) error {
	var first, rest []*test
	var took, all time.Duration
	for _, t := range s.tests {
		if t.reaches[f.n] == 0 {
			continue
		}
		if all += t.took; all <= firstShare {
			first, took = append(first, t), all
		} else {
			rest = append(rest, t)
		}
	}
	if len(first)+len(rest) == 0 {
		return errUnrun
	}
	_, err := s.run(ctx, f.n, first, patience+3*took)
	if err == nil {
		_, err = s.run(ctx, f.n, rest, patience+3*(all-took))
	}
	return err
}

// run runs tests with one fault; 0: without a fault.
func (s *suite) run(ctx context.Context, n int, tests []*test, most time.Duration, env ...string) ([]byte, error) {
	if len(tests) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, errHung)
	defer cancel()
	temp, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	run := "-test.run=^(" + strings.Join(names, "|") + ")$"
	cmd := exec.CommandContext(ctx, s.program(), append(s.flags, run)...)
	cmd.Dir = filepath.Join(s.root, s.folder)
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("LEAFLAB_MUTANT=%d", n), "TMPDIR="+temp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return out, err
}
