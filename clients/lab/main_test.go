package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/client"
)

// binary is the program leaf.
var binary = os.Getenv("LEAF_BIN")

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if binary == "" {
		dir, err := os.MkdirTemp("", "leaf-lab-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "leaf")
		if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/leaf").CombinedOutput(); err != nil {
			panic(fmt.Sprintf("build leaf: %v: %s", err, out))
		}
	}
	return m.Run()
}

// startLab returns the URL of a lab that ends with the test.
func startLab(t *testing.T) string {
	t.Helper()
	l := &lab{binary: binary, worlds: make(map[string]*world)}
	server := httptest.NewServer(l.handler())
	t.Cleanup(func() { server.Close(); l.close() })
	return server.URL
}

// send makes a request of the lab and reads a JSON answer into v, if v is not nil.
func send(t *testing.T, method, url string, v any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if v != nil {
		if err := json.NewDecoder(answer.Body).Decode(v); err != nil {
			t.Fatalf("%s %s: %s: %v", method, url, answer.Status, err)
		}
	}
	return answer.StatusCode
}

func TestHarms(t *testing.T) {
	lab := startLab(t)
	var w world
	send(t, http.MethodPost, lab+"/worlds?servers=2&tag=order:100&pool=p:3:4&tokens&tls", &w)
	if len(w.Servers) != 2 || !strings.HasPrefix(w.URL, "https://") || w.Token == "" || w.WeakToken == "" || w.CertFile == "" {
		t.Fatalf("got %+v", w)
	}
	harm := func(server int, name string) {
		t.Helper()
		if status := send(t, http.MethodPost, fmt.Sprintf("%s/worlds/%s/%d/%s", lab, w.Name, server, name), nil); status != http.StatusNoContent {
			t.Fatalf("%s: status %d", name, status)
		}
	}
	reach := func(server int, want bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, "next", "order", "--server", w.Servers[server], "--timeout", "2s")
		cmd.Env = append(environment(), "LEAF_TOKEN="+w.Token, "SSL_CERT_FILE="+w.CertFile)
		if out, err := cmd.CombinedOutput(); (err == nil) != want {
			t.Fatalf("server %d: %v: %s", server, err, out)
		}
	}
	reach(0, true)
	reach(1, true)
	for _, pair := range [][2]string{{"kill", "start"}, {"lose", "pass"}, {"refuse", "pass"}, {"silence", "pass"}, {"pause", "resume"}} {
		harm(0, pair[0])
		reach(0, false)
		reach(1, true)
		harm(0, pair[1])
		reach(0, true)
	}
	if status := send(t, http.MethodPost, lab+"/worlds/"+w.Name+"/0/typo", nil); status != http.StatusInternalServerError {
		t.Errorf("unknown harm: status %d", status)
	}
	send(t, http.MethodDelete, lab+"/worlds/"+w.Name, nil)
	reach(0, false)
	if _, err := os.Stat(w.CertFile); !os.IsNotExist(err) {
		t.Errorf("the world's folder is still there: %v", err)
	}
}

// TestCallsAndStore: the lab counts calls, slows answers, and replaces a store.
func TestCallsAndStore(t *testing.T) {
	lab := startLab(t)
	var w world
	send(t, http.MethodPost, lab+"/worlds?tag=order:100", &w)
	first := func() int64 {
		t.Helper()
		c, err := client.New(w.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		begun := time.Now()
		id, err := c.Next(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d after %s", id, time.Since(begun))
		return id
	}
	if got := []int64{first(), first()}; !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("got %d, want 1 and, after the stock was given back, 2", got)
	}
	var calls []int64
	send(t, http.MethodGet, lab+"/worlds/"+w.Name+"/calls", &calls)
	if len(calls) != 1 || calls[0] < 2 {
		t.Errorf("got %d calls of Advance, want 2 or more", calls)
	}
	send(t, http.MethodPost, lab+"/worlds/"+w.Name+"/0/slow", nil)
	begun := time.Now()
	first()
	if took := time.Since(begun); took < slowness {
		t.Errorf("a slow server took %s", took)
	}
	send(t, http.MethodPost, lab+"/worlds/"+w.Name+"/0/pass", nil)
	send(t, http.MethodPost, lab+"/worlds/"+w.Name+"/0/empty", nil)
	if id := first(); id != 1 {
		t.Errorf("got %d of an empty store, want 1", id)
	}
}

func TestFreeze(t *testing.T) {
	lab := startLab(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while sleep 0.05; do echo x; done")
	out := new(output)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for len(out.bytes()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	before := len(out.bytes())
	if status := send(t, http.MethodPost, fmt.Sprintf("%s/freezes?pid=%d&ms=1000", lab, cmd.Process.Pid), nil); status != http.StatusNoContent {
		t.Fatalf("status %d", status)
	}
	if n := (len(out.bytes()) - before) / 2; n > 2 {
		t.Errorf("a frozen process wrote %d lines", n)
	}
	after := len(out.bytes())
	for deadline := time.Now().Add(20 * time.Second); len(out.bytes()) == after; {
		if time.Now().After(deadline) {
			t.Fatal("the process does not go on")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if status := send(t, http.MethodPost, lab+"/freezes?pid=1&ms=1", nil); status != http.StatusBadRequest {
		t.Errorf("process 1: status %d", status)
	}
}
