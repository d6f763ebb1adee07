package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/segment"
)

// A logBuffer is written by the server's goroutines and read by the test.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// A running is a server that serves.
type running struct {
	server *server.Server
	addr   string
	resp   string             // of the Redis protocol; empty: off
	store  *drivertest.Faulty // over a memory.Store with the tag "order": step 10, from 1
	log    *logBuffer
	client *http.Client // closes its connections after each request
	stop   context.CancelFunc
	done   chan error // receives what Run returns
}

// segmentOnly is the configuration of a server without time-based schemes.
func segmentOnly(t *testing.T) config.Config {
	cfg := config.Default()
	cfg.RESP = config.Off
	cfg.Listen, cfg.Data, cfg.Store, cfg.Workers = "127.0.0.1:0", t.TempDir(), "memory:", "memory:workers"
	cfg.Snowflake.Enable, cfg.UID.Enable = false, config.EnableFalse
	return cfg
}

func storeBackend(store segment.Store) *backend.Backend {
	return &backend.Backend{
		Name: "memory:", Key: "memory:",
		OpenStore: func() (segment.Store, error) { return store, nil },
	}
}

func run(t *testing.T, plan func(drivertest.Call) drivertest.Fault, edit func(*server.Options)) *running {
	t.Helper()
	store := memory.New()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	r := &running{
		store:  &drivertest.Faulty{Store: store},
		log:    new(logBuffer),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		done:   make(chan error, 1),
	}
	r.store.Plan(plan)
	opts := server.Options{Config: segmentOnly(t), Store: storeBackend(r.store), Version: "v1.2.3", Logger: slog.New(slog.NewTextHandler(r.log, nil))}
	if edit != nil {
		edit(&opts)
	}
	s, err := server.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	r.server, r.addr = s, s.Addr().String()
	if resp := s.RESPAddr(); resp != nil {
		r.resp = resp.String()
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- s.Run(ctx) }()
	t.Cleanup(stop)
	return r
}

func (r *running) get(path string) (int, string, error) {
	res, err := r.client.Get("http://" + r.addr + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

func (r *running) want(t *testing.T, path string, status int, part string) {
	t.Helper()
	if got, body, err := r.get(path); err != nil || got != status || !strings.Contains(body, part) {
		t.Errorf("%s: %d %q %v, want %d %q", path, got, body, err, status, part)
	}
}

// until polls, as nothing tells a client of a change inside the server.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%s: not within 10s", what)
		}
	}
}

func (r *running) status(path string) int {
	status, _, _ := r.get(path)
	return status
}

// wantStop waits for the end of Run and reports how long it took from now.
func (r *running) wantStop(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run does not return")
	}
	return time.Since(start)
}
