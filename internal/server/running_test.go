package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A running is a server that serves.
type running struct {
	server *server.Server
	addr   string
	resp   string             // of the Redis protocol; empty: off
	rpc    string             // of gRPC: its own port, or addr
	store  *drivertest.Faulty // over a kv.Store with the tag "order": step 10, from 1
	log    *testserver.Output
	tls    *tls.Config  // of its clients; nil: no TLS
	client *http.Client // closes its connections after each request
	stop   context.CancelFunc
	done   chan struct{} // closed when Run has returned err
	err    error
}

// segmentOnly is the configuration of a server without time-based schemes.
func segmentOnly(t *testing.T) config.Config {
	cfg := config.Default()
	cfg.RESP, cfg.IDSpace = config.Off, fmt.Sprint(t.Name(), os.Getpid())
	cfg.Listen, cfg.Data, cfg.Store, cfg.Workers = "127.0.0.1:0", t.TempDir(), "memory:", "memory:workers"
	cfg.Snowflake.Enable, cfg.UID.Enable = false, config.EnableFalse
	return cfg
}

func storeBackend(store segment.Store) *backend.Backend {
	return &backend.Backend{Name: "memory:", Key: "memory:", DB: onClose(func() {}), TagStore: store}
}

// An onClose is the closing of a backend.
type onClose func()

func (f onClose) Close() error {
	f()
	return nil
}

func run(t *testing.T, plan func(drivertest.Call) drivertest.Fault, edit func(*server.Options)) *running {
	t.Helper()
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	r := &running{
		store:  &drivertest.Faulty{Store: store},
		log:    new(testserver.Output),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		done:   make(chan struct{}),
	}
	r.store.Plan(plan)
	opts := server.Options{Config: segmentOnly(t), Store: storeBackend(r.store), Version: "v1.2.3", Logger: slog.New(slog.NewTextHandler(r.log, nil))}
	if edit != nil {
		edit(&opts)
	}
	if opts.Config.TLS.Cert != "" {
		r.tls = &tls.Config{InsecureSkipVerify: true}
		r.client.Transport.(*http.Transport).TLSClientConfig = r.tls
	}
	s, err := server.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	r.server, r.addr = s, s.Addr("listen").String()
	if resp := s.Addr("resp"); resp != nil {
		r.resp = resp.String()
	}
	r.rpc = r.addr
	if port := s.Addr("grpc"); port != nil {
		r.rpc = port.String()
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { defer close(r.done); r.err = s.Run(ctx) }()
	t.Cleanup(func() { r.wantStop(t) })
	return r
}

// runHeld runs a server whose store answers no Advance before release, however long that takes.
func runHeld(t *testing.T, edit func(*server.Options)) (r *running, release func()) {
	t.Helper()
	hold := make(chan struct{})
	r = run(t, drivertest.Only(drivertest.OpAdvance, drivertest.Fault{Hold: hold}), func(o *server.Options) {
		o.Config.Segment.Wait, o.Config.Segment.CallTimeout = time.Hour, time.Hour
		if edit != nil {
			edit(o)
		}
	})
	release = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	return r, release
}

// wantWaiting waits for a call of the store.
func (r *running) wantWaiting(t *testing.T) {
	t.Helper()
	until(t, "a request waits for the store", func() bool { return r.store.Calls(drivertest.OpAdvance) > 0 })
}

func (r *running) get(path string) (int, string, error) {
	scheme := "http://"
	if r.tls != nil {
		scheme = "https://"
	}
	res, err := r.client.Get(scheme + r.addr + path)
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
		if time.Since(start) > time.Minute {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func (r *running) status(path string) int {
	status, _, _ := r.get(path)
	return status
}

// wantStop stops the server, if it still runs, and reports how long that took from now. The end of
// the test does so too.
func (r *running) wantStop(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	r.stop()
	select {
	case <-r.done:
		if r.err != nil {
			t.Errorf("Run: %v", r.err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run does not return")
	}
	return time.Since(start)
}

func protocols(one, two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(one)
	p.SetUnencryptedHTTP2(two)
	return p
}
