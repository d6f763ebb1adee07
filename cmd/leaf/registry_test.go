package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// serveWith starts a server in a fresh directory, waits until it holds a worker ID, and
// returns it with its status.
func serveWith(t *testing.T, env []string, args ...string) (*process, string) {
	t.Helper()
	p, err := startServer(t.TempDir(), append(os.Environ(), env...), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if _, err := p.waitFor(regexp.MustCompile("holding a worker ID")); err != nil {
		t.Fatal(err)
	}
	status := leafAt(t, p, "status")
	for deadline := time.Now().Add(10 * time.Second); strings.Contains(status, "segment, not ready") && time.Now().Before(deadline); {
		status = leafAt(t, p, "status") // the store has not answered yet
	}
	return p, status
}

// leafAt runs a command against p.
func leafAt(t *testing.T, p *process, args ...string) string {
	t.Helper()
	code, stdout, stderr := leafRun(t.Context(), append(args, "--server", p.url)...)
	if code != 0 {
		t.Fatalf("leaf %v: exit code %d\n%s\n%s", args, code, stderr, p.text())
	}
	return stdout
}

func shutdown(t *testing.T, p *process) {
	t.Helper()
	sendSignal(t, p, syscall.SIGTERM)
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v:\n%s", err, p.text())
	}
	if log := p.text(); !strings.Contains(log, "handed back the worker ID") {
		t.Errorf("the worker ID was not handed back:\n%s", log)
	}
}

func wantLine(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
		t.Errorf("no %q in:\n%s", pattern, text)
	}
}

func TestServeWithZooKeeperPool(t *testing.T) {
	zk := testserver.ZooKeeper(t)
	url := "zookeeper://" + zk.Addr()
	if code, _, stderr := leafRun(t.Context(), "init", "--workers", url); code != 0 {
		t.Fatal(stderr)
	}
	a, status := serveWith(t, nil, "--workers", url)
	wantLine(t, status, `^worker   0, term 1, from zookeeper://`)
	b, status := serveWith(t, nil, "--workers", url)
	wantLine(t, status, `^worker   1, term 1, from zookeeper://`)
	leafAt(t, a, "next", "--scheme", "snowflake")
	wantLine(t, leafAt(t, b, "worker", "list"), `^0 +yes`)
	shutdown(t, a)
	shutdown(t, b)
	if code, stdout, stderr := leafRun(t.Context(), "worker", "list", "--workers", url); code != 0 || strings.Count(stdout, " no ") != 2 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// With a leaf.properties alone a server can take a place among Java Leaf's.
func TestServeFromJavaSettings(t *testing.T) {
	zk := testserver.ZooKeeper(t)
	file := filepath.Join(t.TempDir(), "leaf.properties")
	text := fmt.Sprintf("leaf.name=shop\nleaf.segment.enable=false\nleaf.snowflake.zk.address=%s\nleaf.snowflake.port=8080\n", zk.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, status := serveWith(t, nil, "--config", file)
	wantLine(t, status, `^worker   1, term 1, from zookeeper://`) // 0 is the one that Java servers race for
	wantLine(t, leafAt(t, p, "decode", strings.TrimSpace(leafAt(t, p, "next", "--scheme", "snowflake"))), `^worker    1$`)
	shutdown(t, p)
	url := "zookeeper://" + zk.Addr() + "?layout=leaf&name=shop"
	if code, stdout, stderr := leafRun(t.Context(), "worker", "list", "--workers", url); code != 0 || !strings.Contains(stdout, "\n1 ") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestServeWithMySQL(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	url := db.URL(db.NewDatabase(t))
	if code, _, stderr := leafRun(t.Context(), "init", "--store", url, "--workers", url); code != 0 {
		t.Fatal(stderr)
	}
	// The worker IDs come from the store; this machine's configuration says that its server loses
	// nothing.
	p, status := serveWith(t, nil, "--store", url, "--workers", url+"?claim_delay=0")
	wantLine(t, status, `^scheme   segment, ready$`)
	wantLine(t, status, `^worker   0, term 1, from mysql://`)
	leafAt(t, p, "next", "--scheme", "snowflake")
	shutdown(t, p)
	q, err := startServer(t.TempDir(), os.Environ(), "--store", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.kill)
	wantLine(t, leafAt(t, q, "status"), `^worker .*from mysql://`)
}
