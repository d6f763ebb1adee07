package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A database that accepts connections and answers nothing neither delays /healthz at the
// start nor the stop.
func TestFrozenDatabase(t *testing.T) {
	testserver.Long(t)
	t.Run("mysql", func(t *testing.T) {
		db := testserver.MariaDB(t, nil)
		freezeAndStop(t, db.URL(db.NewDatabase(t)), db.Pause, db.Resume)
	})
	t.Run("postgres", func(t *testing.T) {
		db := testserver.Postgres(t, nil)
		freezeAndStop(t, db.URL(db.NewDatabase(t)), db.Pause, db.Resume)
	})
}

func freezeAndStop(t *testing.T, url string, pause, resume func() error) {
	for _, args := range [][]string{{"init", "--store", url, "--workers", url}, {"tag", "create", "order", "--step", "10", "--store", url}} {
		if code, _, stderr := leafRun(t.Context(), args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	const limit = 2 * time.Second
	start := func() *process {
		t.Helper()
		p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_SHUTDOWN_TIMEOUT="+limit.String()), "--store", url, "--data", filepath.Join(t.TempDir(), "data"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.kill)
		return p
	}
	p := start()
	wantSuccess(t, p, "next", "order", "--server", p.url) // it holds connections, IDs and a worker ID
	freeze := func(do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	freeze(pause)
	defer freeze(resume)
	begin := time.Now()
	sendSignal(t, p, syscall.SIGTERM)
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v:\n%s", err, p.text())
	}
	if took := time.Since(begin); took > limit+6*time.Second { // it took 9 s before it was bounded
		t.Errorf("the stop took %v, shutdown_timeout is %v:\n%s", took, limit, p.text())
	}

	begin = time.Now()
	p = start()
	res, err := http.Get(p.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if took := time.Since(begin); res.StatusCode != 200 || took > 4*time.Second {
		t.Errorf("/healthz answered %d, %v after the start:\n%s", res.StatusCode, took, p.text())
	}
}

// SIGHUP without anything to read again changes nothing, and SIGTERM has the server drain before it
// stops.
func TestHangUpAndDrain(t *testing.T) {
	const drain = 4 * time.Second // enough for a few requests on a busy machine
	p, err := startServer(t.TempDir(), append(os.Environ(), "LEAF_DRAIN_DELAY="+drain.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	wantSuccess(t, p, "next", "leaf-segment-test", "--server", p.url)
	for range 2 {
		sendSignal(t, p, syscall.SIGHUP)
	}
	if _, err := p.waitFor(regexp.MustCompile("the configuration was read again")); err != nil {
		t.Fatal(err)
	}
	wantSuccess(t, p, "next", "leaf-segment-test", "--server", p.url)
	begin := time.Now()
	sendSignal(t, p, syscall.SIGTERM)
	if _, err := p.waitFor(regexp.MustCompile("stopping;")); err != nil {
		t.Fatal(err)
	}
	sendSignal(t, p, syscall.SIGHUP) // no second signal either
	for ready := ""; !strings.Contains(ready, "not ready: the server is stopping"); {
		if time.Since(begin) > drain/2 { // it is so a moment after the log says so
			t.Fatalf("/readyz while it drains: %s", ready)
		}
		ready = fetch(t, http.MethodGet, p.url+"/readyz", "*/*", "")
	}
	wantSuccess(t, p, "next", "leaf-segment-test", "--server", p.url)
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v:\n%s", err, p.text())
	}
	if took := time.Since(begin); took < drain {
		t.Errorf("it drained for %v", took)
	}
}
