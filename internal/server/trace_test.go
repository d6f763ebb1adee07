package server_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server"
)

// A span is one that a collector has received.
type span struct {
	trace, id, parent string
	about             map[string]string
	failed            bool
}

// A collector receives spans over OTLP.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   map[string][]span // by name
	service string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string][]span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := new(collectorpb.ExportTraceServiceRequest)
		if err = errors.Join(err, proto.Unmarshal(body, req)); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		c.add(req)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) add(req *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				about := map[string]string{}
				for _, a := range s.GetAttributes() {
					about[a.GetKey()] = a.GetValue().String()
				}
				c.spans[s.GetName()] = append(c.spans[s.GetName()], span{hex.EncodeToString(s.GetTraceId()), hex.EncodeToString(s.GetSpanId()),
					hex.EncodeToString(s.GetParentSpanId()), about, s.GetStatus().GetCode() != 0})
			}
		}
	}
}

// one returns the span with that name in a trace.
func (c *collector) one(t *testing.T, name, trace string) span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.spans[name], func(s span) bool { return s.trace == trace })
	if i < 0 {
		t.Fatalf("no span %q in trace %s; there are %v", name, trace, c.spans)
	}
	return c.spans[name][i]
}

// traceID is that of the n-th caller, whose span callerSpan is.
func traceID(n int) string { return fmt.Sprintf("%032x", n) }

const callerSpan = "00f067aa0ba902b7"

// send sends a request as a part of the caller's trace.
func (r *running) send(t *testing.T, trace, method, path, body string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer hunter2")
	req.Header.Set("Traceparent", "00-"+trace+"-"+callerSpan+"-01")
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// Each request for IDs has a span in its caller's trace, with the store calls that it caused below
// it. At the stop the server sends the remaining spans.
func TestTraces(t *testing.T) {
	c := newCollector(t)
	registry := newRegistry()
	r := run(t, nil, func(o *server.Options) {
		timeBased(o, registry)
		o.Config.Traces = c.URL
		o.Store.Name = "mysql://root:hunter2@db/leaf"
	})
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	requests := []struct{ method, path, body, name string }{
		{"GET", "/api/segment/get/order", "", "GET /api/segment/get/{key}"},
		{"GET", "/v1/ids/segment/order", "", "GET /v1/ids/{scheme}/{key}"},
		{"POST", "/leaf.v1.LeafService/Next", `{"key":"order"}`, "leaf.v1.LeafService/Next"},
		{"GET", "/api/snowflake/get/x", "", "GET /api/snowflake/get/{key}"},
		{"GET", "/v1/ids/segment/none", "", "GET /v1/ids/{scheme}/{key}"},
		{"POST", "/leaf.v1.LeafService/Next", `{"key":"none"}`, "leaf.v1.LeafService/Next"},
	}
	for i, req := range requests {
		if status := r.send(t, traceID(i+1), req.method, req.path, req.body); (status == 200) != (i < 4) {
			t.Errorf("%s: %d", req.path, status)
		}
	}
	r.wantStop(t)
	for i, req := range requests {
		if got := c.one(t, req.name, traceID(i+1)); got.parent != callerSpan || got.failed {
			t.Errorf("%s: %+v", req.path, got)
		}
	}
	first := c.one(t, requests[0].name, traceID(1))
	if call := c.one(t, "store advance", traceID(1)); call.parent != first.id || !strings.Contains(call.about["leaf.tag"], "order") {
		t.Errorf("the call of the store is %+v, want it below %+v", call, first)
	}
	if got := c.one(t, requests[2].name, traceID(3)).about["leaf.key"]; !strings.Contains(got, "order") {
		t.Errorf("the key of a call is %s", got)
	}
	if got := c.one(t, requests[5].name, traceID(6)).about["error.type"]; !strings.Contains(got, "UNKNOWN_TAG") {
		t.Errorf("the error of a call is %s", got)
	}
	if len(c.spans["store return"]) == 0 {
		t.Error("no span of the stop's give-back")
	}
	if all := fmt.Sprint(c.spans); strings.Contains(all, "hunter2") || strings.Contains(all, "readyz") || c.service != "leaf" {
		t.Errorf("of service %q: %s", c.service, all)
	}
}

// A call of the store that fails says so by its cause alone.
func TestTraceOfFailure(t *testing.T) {
	c := newCollector(t)
	failing := func(call drivertest.Call) (f drivertest.Fault) {
		if call.Op == drivertest.OpAdvance {
			f.Before = errors.New("no way to root:hunter2@db")
		}
		return f
	}
	r := run(t, failing, func(o *server.Options) { o.Config.Traces, o.Config.Segment.Wait = c.URL, time.Millisecond })
	if status := r.send(t, traceID(1), "GET", "/v1/ids/segment/order", ""); status != 503 {
		t.Errorf("answered %d", status)
	}
	r.wantStop(t)
	call := c.one(t, "store advance", traceID(1))
	if !call.failed || !strings.Contains(call.about["error.type"], "UNAVAILABLE") || strings.Contains(fmt.Sprint(c.spans), "hunter2") {
		t.Errorf("%+v in %v", call, c.spans)
	}
	if !c.one(t, "GET /v1/ids/{scheme}/{key}", traceID(1)).failed {
		t.Error("the request's span says nothing of the failure")
	}
}

// An absent collector changes nothing for callers, and the log reports it once.
func TestTracesWithoutCollector(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // milliseconds
	down := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer down.Close()
	r := run(t, nil, func(o *server.Options) { o.Config.Traces = down.URL })
	for want := 1; want <= 3 || !strings.Contains(r.log.String(), "spans are lost"); want++ {
		r.want(t, "/api/segment/get/order", 200, fmt.Sprint(want))
	}
	r.wantStop(t)
	if n := strings.Count(r.log.String(), "spans are lost"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, r.log)
	}
}

// The environment of a machine may have settings that leaf does not support.
func TestTracesThatCannotBe(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	r := run(t, nil, nil)
	r.want(t, "/api/segment/get/order", 200, "1")
	r.wantStop(t)
	if !strings.Contains(r.log.String(), "requests are not traced") {
		t.Errorf("the log says nothing of it:\n%s", r.log)
	}
}
