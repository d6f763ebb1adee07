package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// listStarts is `leaf worker list -o json` of the registry at url.
func listStarts(t *testing.T, args ...string) (rows startRows) {
	t.Helper()
	code, stdout, stderr := leafRun(t.Context(), append([]string{"worker", "list", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &rows); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return rows
}

// A killed server that starts again, with its data directory or a copy of it, takes a new row, and
// none of its earlier IDs. It does not need the database meanwhile.
func TestServeWithWorkerNode(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	url := db.URL(db.NewDatabase(t)) + "?layout=worker_node"
	if code, _, stderr := leafRun(t.Context(), "init", "--workers", url); code != 0 {
		t.Fatal(stderr)
	}
	var seen drivertest.IDs
	ids := seen.Shard()
	ask := func(p *process) {
		t.Helper()
		for text := range strings.FieldsSeq(leafAt(t, p, "next", "--scheme", "uid", "-n", "20000")) {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			ids.Add(id)
		}
	}
	dir := t.TempDir()
	start := func(worker int) *process {
		t.Helper()
		p, err := startServer(dir, os.Environ(), "--workers", url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.kill)
		if _, err := p.waitFor(regexp.MustCompile(fmt.Sprintf("holding a worker ID.*worker=%d ", worker))); err != nil {
			t.Fatal(err)
		}
		wantLine(t, leafAt(t, p, "status"), `^scheme   uid, ready$`)
		wantLine(t, leafAt(t, p, "status"), `^scheme   snowflake, off: .*1023, .*19 worker bits`)
		ask(p)
		return p
	}
	a := start(1)
	b := start(2)
	wantLine(t, leafAt(t, b, "worker", "list"), `^2 +mine +\S+:1\d{12}-\d{1,5} +actual +`+time.Now().Format("2006-"))
	wantLine(t, leafAt(t, a, "worker", "list"), `^used 2 of 524287 starts, 524285 left$`)
	wantLine(t, leafAt(t, a, "status", "-o", "json"), `"startsLeft": +"52428[56]"`)
	if code, _, stderr := leafRun(t.Context(), "worker", "free", "1", "--yes", "--server", a.url); code != 1 || !strings.Contains(stderr, "used for one start") || strings.Contains(stderr, "note:") {
		t.Errorf("free: exit code %d\n%s", code, stderr)
	}
	a.kill()
	c := start(3) // in the slot of the killed one
	shutdown(t, b)
	d := start(4)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	ask(c)
	ask(d)
	c.kill()
	e, err := startServer(dir, os.Environ(), "--workers", url) // without an earlier start to continue from
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	if _, err := e.waitFor(regexp.MustCompile("no worker ID: time-based IDs cannot be issued")); err != nil {
		t.Error(err)
	}
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.waitFor(regexp.MustCompile("holding a worker ID.*worker=5 ")); err != nil {
		t.Error(err)
	}
	ask(e)
	if err := seen.Check(); err != nil {
		t.Error(err)
	}
	rows := listStarts(t, "--workers", url)
	if rows.Used != 5 || rows.Max != 0 || len(rows.Latest) != 5 || rows.Latest[0].Worker != 5 {
		t.Errorf("starts: %+v", rows)
	}
	code, stdout, _ := leafRun(t.Context(), "worker", "list", "--workers", url)
	if code != 0 || !strings.Contains(stdout, "used 5 starts; a layout of 19 worker bits has 524282 left, one of 22 bits 4194298") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// A table without this machine's rows deals nothing.
func TestWorkerNodeLostRows(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	database := db.NewDatabase(t)
	url := db.URL(database) + "?layout=worker_node"
	if code, _, stderr := leafRun(t.Context(), "init", "--workers", url); code != 0 {
		t.Fatal(stderr)
	}
	dir := t.TempDir()
	start := func(logged string) *process {
		t.Helper()
		p, err := startServer(dir, os.Environ(), "--workers", url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.kill)
		if _, err := p.waitFor(regexp.MustCompile(logged)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	start("holding a worker ID.*worker=1 ").kill()
	start("holding a worker ID.*worker=2 ").kill()
	db.Exec(t, database, "TRUNCATE TABLE WORKER_NODE")
	p := start("the highest ID in WORKER_NODE is 0, but this machine was dealt worker ID 2")
	if code, _, stderr := leafRun(t.Context(), "next", "--scheme", "uid", "--server", p.url); code != 1 || !strings.Contains(stderr, "counter would move backwards") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	// With the message's remedy the running server continues.
	db.Exec(t, database, "INSERT INTO WORKER_NODE VALUES (100, 'lifted', '0', 2, CURRENT_DATE, NOW(), NOW())")
	if _, err := p.waitFor(regexp.MustCompile("holding a worker ID.*worker=101 ")); err != nil {
		t.Error(err)
	}
}
