package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/worker"
)

// A registry is one in memory that can be away.
type registry struct {
	*kv.Registry
	down atomic.Pointer[error]
	hung atomic.Pointer[chan struct{}] // receives when a call that hung was given up
}

func (r *registry) trouble(ctx context.Context) error {
	if gaveUp := r.hung.Load(); gaveUp != nil {
		<-ctx.Done()
		*gaveUp <- struct{}{}
		return ctx.Err()
	}
	if err := r.down.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *registry) List(ctx context.Context) ([]worker.Record, error) {
	if err := r.trouble(ctx); err != nil {
		return nil, err
	}
	return r.Registry.List(ctx)
}

func (r *registry) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	if err := r.trouble(ctx); err != nil {
		return worker.Record{}, err
	}
	return r.Registry.Swap(ctx, old, new)
}

// held reports whether somebody holds worker 0.
func (r *registry) held(t *testing.T) bool {
	t.Helper()
	record, err := r.Load(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return record.Held()
}

func newRegistry() *registry { return &registry{Registry: memory.New().Registry()} }

// timeBased has the server serve snowflake with worker IDs of r.
func timeBased(o *server.Options, r worker.Registry) {
	o.Config.Snowflake.Enable, o.Config.Snowflake.Wait = true, 50*time.Millisecond
	o.Workers = &backend.Backend{Name: "memory:workers", Key: "memory:workers", DB: onClose(func() {}), WorkerRegistry: r}
}

func TestServeBothSchemes(t *testing.T) {
	reg := newRegistry()
	r := run(t, nil, func(o *server.Options) { timeBased(o, reg) })
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	_, body, err := r.get("/api/snowflake/get/x")
	id, parseErr := strconv.ParseInt(body, 10, 64)
	if err != nil || parseErr != nil || id>>22 == 0 {
		t.Errorf("/api/snowflake/get/x: %q, %v", body, err)
	}
	r.want(t, "/decodeSnowflakeId?snowflakeId="+body, 200, `"workerId":"0"`)
	r.want(t, "/api/segment/get/order", 200, "1")
	r.want(t, "/readyz?verbose", 200, "scheme segment enabled\nscheme snowflake enabled\n")
	status, err := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr).Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || !status.GetLease().GetHeld() || status.GetLease().GetRegistry() != "memory:workers" || len(status.GetLease().GetLayouts()) != 1 {
		t.Errorf("Status: %v, %v", status, err)
	}
	record, err := reg.Load(t.Context(), 0)
	_, port, _ := strings.Cut(r.addr, ":")
	if err != nil || !record.Held() || !strings.Contains(record.Owner, fmt.Sprintf(":%s pid %d leaf v1.2.3 config store=", port, os.Getpid())) {
		t.Errorf("record %+v, %v", record, err)
	}
	r.wantStop(t)
	if reg.held(t) {
		t.Error("the worker ID was not handed back")
	}
	if log := r.log.String(); !strings.Contains(log, `scheme="segment, snowflake" store=memory: workers=memory:workers version=v1.2.3`) {
		t.Errorf("the first line does not name both schemes:\n%s", log)
	}
}

func TestServeWithoutStore(t *testing.T) {
	r := run(t, nil, func(o *server.Options) {
		timeBased(o, newRegistry())
		o.Store, o.Config.Segment.Enable = nil, false
	})
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	r.want(t, "/api/snowflake/get/x", 200, "")
	r.want(t, "/api/segment/get/order", 501, "segment.enable is false")
	r.want(t, "/cache", 500, "leaf.segment.enable=true")
	r.wantStop(t)
	if log := r.log.String(); !strings.Contains(log, "scheme=snowflake workers=memory:workers version=") {
		t.Errorf("the first line is wrong:\n%s", log)
	}
}

// An absent registry stops its own scheme only.
func TestRegistryDownAtStart(t *testing.T) {
	reg := newRegistry()
	reg.down.Store(new(errors.New("connection refused")))
	r := run(t, nil, func(o *server.Options) { timeBased(o, reg) })
	until(t, "the store is ready", func() bool { return r.status("/api/segment/get/order") == 200 })
	until(t, "the reason is known", func() bool {
		_, body, _ := r.get("/readyz")
		return strings.Contains(body, "ask the worker registry: no usable answer")
	})
	r.want(t, "/readyz", 503, "not ready: snowflake: ")
	r.want(t, "/readyz?scheme=segment", 200, "ok")
	r.want(t, "/readyz?scheme=uuid", 200, "ok")
	r.want(t, "/readyz?scheme=snowflake", 503, "not ready: snowflake: ")
	r.want(t, "/readyz?scheme=segment&scheme=snowflake", 503, "not ready: snowflake: ")
	r.want(t, "/readyz?scheme=uid", 503, "scheme not enabled")
	r.want(t, "/readyz?scheme=snowflakes", 400, "scheme not enabled")
	r.want(t, "/readyz?verbose", 503, "scheme segment enabled\nscheme snowflake enabled; not ready: ")
	r.want(t, "/api/snowflake/get/x", 500, "Result{id=-3, status=EXCEPTION}")
	r.want(t, "/api/snowflake/get/x", 500, "ask the worker registry: no usable answer")
	if log := r.log.String(); !strings.Contains(log, "connection refused") {
		t.Errorf("the log:\n%s", log)
	}
	reg.down.Store(nil)
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	r.want(t, "/api/snowflake/get/x", 200, "")
}

// The worker ID is handed back only after the last request.
func TestStopHandsBackLast(t *testing.T) {
	reg := newRegistry()
	r, release := runHeld(t, func(o *server.Options) { timeBased(o, reg) })
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	answer := make(chan int, 1)
	go func() { answer <- r.status("/api/segment/get/order") }()
	r.wantWaiting(t)
	r.stop()
	until(t, "closed for new connections", func() bool { _, _, err := r.get("/healthz"); return err != nil })
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; time.Sleep(5 * time.Millisecond) {
		if !reg.held(t) {
			t.Fatal("the worker ID was handed back with a request in flight")
		}
	}
	release()
	if got := <-answer; got != 200 {
		t.Errorf("answer: %d", got)
	}
	r.wantStop(t)
	if reg.held(t) {
		t.Error("the worker ID was not handed back")
	}
}

// A registry that hangs does not hold up the stop for longer than it may take.
func TestStopWithHungRegistry(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second // a tenth of it is left for the log
	reg, gaveUp := newRegistry(), make(chan struct{}, 100)
	r := run(t, nil, func(o *server.Options) {
		timeBased(o, reg)
		o.Config.ShutdownTimeout = limit
	})
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	reg.hung.Store(&gaveUp)
	if took := r.wantStop(t); took > 3*limit {
		t.Errorf("the stop took %v, want about %v", took, limit)
	}
	if log := r.log.String(); !strings.Contains(log, "the worker ID was not handed back") {
		t.Errorf("the log says nothing of the worker ID:\n%s", log)
	}
	<-gaveUp
}

// The server refuses a configuration in which two schemes would issue the same IDs, from any
// source.
func TestBadConfig(t *testing.T) {
	opts := server.Options{Config: segmentOnly(t), Store: storeBackend(memory.New().Store())}
	timeBased(&opts, newRegistry())
	opts.Config.UID.Enable, opts.Config.Snowflake.Layouts = config.EnableTrue, config.Layouts{"twin": {Preset: "uid"}}
	if _, err := server.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "the same IDs") {
		t.Errorf("one layout in two schemes: %v", err)
	}
}

// A lossyRegistry may lose writes: claims wait before they count.
type lossyRegistry struct{ worker.Registry }

func (lossyRegistry) ServerEpoch(context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{Lossy: true}, nil
}

// A claim that waits says so, for how long and why, in the log and to callers.
func TestClaimThatWaitsSaysSo(t *testing.T) {
	r := run(t, nil, func(o *server.Options) { timeBased(o, lossyRegistry{newRegistry()}) })
	const why = "the registry may lose writes"
	until(t, "claimed", func() bool { return strings.Contains(r.log.String(), "may be used from") })
	r.want(t, "/readyz", 503, "waiting before the worker ID is used: worker ID 0 may be used from ")
	r.want(t, "/api/snowflake/get/x", 500, "Result{id=-3, status=EXCEPTION}")
	for _, target := range []string{"/api/snowflake/get/x", "/api/snowflake/get/x?n=5"} {
		if _, body, _ := r.get(target); !strings.Contains(body, "s: "+why) || strings.Contains(body, "the clock is behind") {
			t.Errorf("%s: %s", target, body)
		}
	}
	if log := r.log.String(); !strings.Contains(log, "no worker ID: time-based IDs cannot be issued") || !strings.Contains(log, why) {
		t.Errorf("the log:\n%s", log)
	}
}

// With StartWait the port opens when every scheme is ready.
func TestPortOpensWhenReady(t *testing.T) {
	reg := newRegistry()
	reg.down.Store(new(errors.New("connection refused")))
	r := run(t, nil, func(o *server.Options) { timeBased(o, reg); o.Config.StartWait = time.Hour })
	until(t, "waits", func() bool { return strings.Contains(r.log.String(), "the port opens when all schemes are ready") })
	until(t, "has tried", func() bool { return strings.Contains(r.log.String(), "connection refused") })
	if _, _, err := r.get("/healthz"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("before the worker ID is there: %v", err)
	}
	reg.down.Store(nil)
	until(t, "opens", func() bool { status, _, err := r.get("/api/snowflake/get/x"); return err == nil && status == 200 })
	r.want(t, "/readyz", 200, "ok")
}

// StartWait ends although a scheme is not ready, and with the server.
func TestStartWaitEnds(t *testing.T) {
	for _, limit := range []time.Duration{200 * time.Millisecond, time.Hour} {
		reg := newRegistry()
		reg.down.Store(new(errors.New("connection refused")))
		start := time.Now()
		r := run(t, nil, func(o *server.Options) { timeBased(o, reg); o.Config.StartWait = limit })
		if limit < time.Hour {
			until(t, "opens", func() bool { return r.status("/api/segment/get/order") == 200 })
			if took := time.Since(start); took < limit {
				t.Errorf("it opened after %v", took)
			}
			r.want(t, "/readyz", 503, "not ready")
		}
		r.wantStop(t)
		if log := r.log.String(); strings.Contains(log, "msg=serving") != (limit < time.Hour) {
			t.Errorf("with start_wait=%v the log is:\n%s", limit, log)
		}
	}
}

// The whole stop is bounded, even if the store's Close hangs.
func TestCloseIsBounded(t *testing.T) {
	const limit = 500 * time.Millisecond
	closing, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	r := run(t, nil, func(o *server.Options) {
		o.Config.ShutdownTimeout = limit
		o.Store.DB = onClose(func() { close(closing); <-hold })
	})
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	if took := r.wantStop(t); took > 4*limit {
		t.Errorf("the stop took %v", took)
	}
	<-closing
}
