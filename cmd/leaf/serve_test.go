package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/hint"
)

// unfinishedRequest sends a request whose body never comes. Once it returns, the
// request is being handled.
func unfinishedRequest(t *testing.T, url string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	const head = "POST /leaf.v1.LeafService/Take HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
		"Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("the server answered %q, %v; want 100 Continue", line, err)
	}
}

func TestDurationsInJSONLog(t *testing.T) {
	var out bytes.Buffer
	cfg := config.Config{}
	cfg.Log.Format = config.FormatJSON
	newLogger(&out, cfg, slog.LevelInfo).Info("stopped", "took", 1500*time.Millisecond)
	if !strings.Contains(out.String(), `"took":"1.5s"`) {
		t.Errorf("the log has %s", &out)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_SHUTDOWN_TIMEOUT=1h"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	unfinishedRequest(t, p.url)
	sendSignal(t, p, syscall.SIGTERM)
	if _, err := p.waitFor(regexp.MustCompile("stopping;.*cause=.*terminated")); err != nil {
		t.Fatal(err)
	}
	sendSignal(t, p, syscall.SIGTERM)
	exit, ok := errors.AsType[*exec.ExitError](p.wait())
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v, want the second signal to end it", exit)
	}
}

// TestShutdownTimeoutHolds stops a server with a request that never ends.
func TestShutdownTimeoutHolds(t *testing.T) {
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_SHUTDOWN_TIMEOUT=200ms"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	unfinishedRequest(t, p.url)
	begin := time.Now()
	sendSignal(t, p, syscall.SIGINT)
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v:\n%s", err, p.text())
	}
	if told := regexp.MustCompile(`(?s)msg="stopping;.*msg="?stopped`); !told.MatchString(p.text()) { // stopped, or stopped before all was given back
		t.Errorf("the stop is not told, or in the wrong order:\n%s", p.text())
	}
	if took := time.Since(begin); took > 9*time.Second {
		t.Errorf("the stop took %s, as if there were no shutdown_timeout", took)
	}
}

// A tokens file on a network drive without its server holds up no stop: a pipe without a writer
// stands for it.
func TestHungFileHoldsUpNoStop(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(file, []byte("tokens: [{name: a, certificate: a, take: [a]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := startServer(dir, append(os.Environ(), "LEAF_TOKENS_FILE="+file, "LEAF_SHUTDOWN_TIMEOUT=5s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	sendSignal(t, p, syscall.SIGHUP)
	sendSignal(t, p, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- p.wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v:\n%s", err, p.text())
		}
	case <-time.After(20 * time.Second):
		t.Errorf("the stop hangs:\n%s", p.text())
	}
}

// A server whose log has lost its reader serves on, and gives its IDs back when it stops.
func TestLogWithoutReader(t *testing.T) {
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_LOG_ACCESS=1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if err := p.err.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // a line of the log for each
		res, err := http.Get(p.url + "/api/segment/get/leaf-segment-test")
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		id, err := io.ReadAll(res.Body)
		res.Body.Close()
		if want := fmt.Sprint(i + 1); err != nil || string(id) != want {
			t.Errorf("ID %q, %v, want %s", id, err, want)
		}
	}
	sendSignal(t, p, syscall.SIGTERM)
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestMaxBatchHolds(t *testing.T) {
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_MAX_BATCH=3"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	for n, want := range map[string]int{"3": http.StatusOK, "4": http.StatusBadRequest} {
		res, err := http.Get(p.url + "/api/segment/get/leaf-segment-test?n=" + n)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("a batch of %s: status %d, want %d", n, res.StatusCode, want)
		}
	}
}

// Both a port below 1024 and a folder of another user are "permission denied".
func TestHintOfDeniedStart(t *testing.T) {
	denied := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)}
	folder := fmt.Errorf("%w: %w", hint.ErrDataDir, &fs.PathError{Op: "mkdir", Path: "leaf-data", Err: syscall.EACCES})
	for err, want := range map[error]string{denied: "ports below 1024", folder: "make it writable for this user"} {
		var out strings.Builder
		fails := &cobra.Command{Use: "leaf", RunE: func(*cobra.Command, []string) error { return explainListen(err) }}
		cli.Run(t.Context(), fails, []string{}, io.Discard, &out)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%v: %s, want a hint with %q", err, &out, want)
		}
	}
}

func sendSignal(t *testing.T, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestServersShareFirstRun starts servers on one data directory that does not exist
// yet: one creates it, and all hand out different IDs.
func TestServersShareFirstRun(t *testing.T) {
	const servers = 3
	dir := t.TempDir()
	started := make(chan *process, servers)
	for range servers {
		go func() {
			p, err := startServer(dir, os.Environ())
			if err != nil {
				t.Error(err)
			}
			started <- p
		}()
	}
	created, seen := 0, map[string]bool{}
	for range servers {
		p := <-started
		if p == nil {
			continue
		}
		t.Cleanup(p.kill)
		created += strings.Count(p.text(), "created an embedded database")
		var out strings.Builder
		if code := cli.Run(t.Context(), newRoot(), []string{"next", "leaf-segment-test", "-n", "5", "--server", p.url}, &out, t.Output()); code != 0 {
			t.Errorf("leaf next: exit code %d", code)
		}
		for id := range strings.Lines(out.String()) {
			if seen[id] {
				t.Errorf("ID %s was handed out twice", strings.TrimSpace(id))
			}
			seen[id] = true
		}
	}
	if created != 1 || len(seen) != 5*servers {
		t.Errorf("%d databases created, %d IDs; want 1 and %d", created, len(seen), 5*servers)
	}
}
