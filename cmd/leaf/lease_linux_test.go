package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A leasing is a `leaf worker lease` whose command has said that it is ready.
type leasing struct {
	leaf *exec.Cmd
	out  *bufio.Reader // ends with the last process
	said strings.Builder
	pid  int // of the innermost process
}

func startLeasing(t *testing.T, p *process, ttl, script string) *leasing {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	l := &leasing{leaf: exec.Command("leaf", "worker", "lease", "p", "--server", p.url, "--ttl", ttl, "--", "sh", "-c", script), out: bufio.NewReader(r)}
	l.leaf.Stdout, l.leaf.Stderr, l.leaf.WaitDelay = w, &l.said, time.Second // a process that runs on keeps them open
	if err := l.leaf.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := l.out.ReadString('\n')
	if l.pid, _ = strconv.Atoi(strings.TrimSpace(line)); l.pid == 0 {
		t.Fatalf("the command is not ready: %q, %v, %s", line, err, l.said.String())
	}
	t.Cleanup(func() { _ = l.leaf.Process.Kill(); _ = syscall.Kill(l.pid, syscall.SIGKILL) })
	return l
}

// end waits for leaf. No process of the command may run on.
func (l *leasing) end(t *testing.T, code int) string {
	t.Helper()
	_ = l.leaf.Wait()
	if err := syscall.Kill(l.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("leaf has ended, and process %d of its command runs: %v", l.pid, err)
		_ = syscall.Kill(l.pid, syscall.SIGKILL)
	}
	if got := l.leaf.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d: %s", got, code, l.said.String())
	}
	text, err := io.ReadAll(l.out)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func poolServer(t *testing.T) *process {
	t.Helper()
	p, err := startServer(t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	leafAt(t, p, "worker", "pool", "create", "p", "--layout", "epoch=2026-01-01T00:00:00Z,worker=5,sequence=12")
	return p
}

const (
	alone  = `trap "sleep 0.3; echo stopped; exit 7" %; echo $$; while :; do sleep 0.05; done`
	forked = `sh -c 'trap "sleep 0.3; echo stopped; exit 7" %; echo $$; while :; do sleep 0.05; done'; true`
)

// TestLeaseSignal stops leaf alone: it passes the signal on, and gives the worker ID back once all
// processes of the command have ended.
func TestLeaseSignal(t *testing.T) {
	p := poolServer(t)
	for _, test := range []struct {
		script, name string
		signal       syscall.Signal
		code         int
	}{
		{alone, "INT", syscall.SIGINT, 7},
		{alone, "TERM", syscall.SIGTERM, 7},
		{alone, "HUP", syscall.SIGHUP, 7},
		{alone, "QUIT", syscall.SIGQUIT, 7},
		{forked, "TERM", syscall.SIGTERM, 128 + int(syscall.SIGTERM)}, // the outer shell's
	} {
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, test.signal) // where these tests ignore it, leaf and the command would too
		l := startLeasing(t, p, "1m", strings.ReplaceAll(test.script, "%", test.name))
		signal.Stop(caught)
		if err := l.leaf.Process.Signal(test.signal); err != nil {
			t.Fatal(err)
		}
		if text := l.end(t, test.code); text != "stopped\n" {
			t.Errorf("%s: the command said %q", test.name, text)
		}
	}
	if list := leafAt(t, p, "worker", "list", "--pool", "p"); strings.Contains(list, "yes") {
		t.Errorf("a lease was not released:\n%s", list)
	}
}

// TestLeaseKilled has the kernel end a command whose leaf was killed.
func TestLeaseKilled(t *testing.T) {
	l := startLeasing(t, poolServer(t), "1m", `echo $$; exec sleep 1000`)
	if err := l.leaf.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = l.leaf.Wait()
	if _, err := io.ReadAll(l.out); err != nil {
		t.Errorf("the command of a killed leaf runs on: %v", err)
	}
}

// TestLeaseOrphan keeps the lease for a process that the command leaves behind.
func TestLeaseOrphan(t *testing.T) {
	l := startLeasing(t, poolServer(t), "1m", `setsid sh -c 'echo $$; sleep 1; echo ended' &`)
	if text := l.end(t, 0); text != "ended\n" {
		t.Errorf("the process said %q", text)
	}
	if !strings.Contains(l.said.String(), "the lease is kept until they end") {
		t.Errorf("leaf said %q", l.said.String())
	}
}

// TestLeaseServerHangs stops the server: a command that ignores SIGTERM is killed after it.
func TestLeaseServerHangs(t *testing.T) {
	p := poolServer(t)
	l := startLeasing(t, p, "4s", `sh -c 'trap "echo asked" TERM; echo $$; while :; do sleep 0.05; done'; true`)
	sendSignal(t, p, syscall.SIGSTOP)
	defer sendSignal(t, p, syscall.SIGCONT)
	if text := l.end(t, 1); text != "asked\n" {
		t.Errorf("the command said %q", text)
	}
	if !strings.Contains(l.said.String(), "was not renewed") {
		t.Errorf("leaf said %q", l.said.String())
	}
}
