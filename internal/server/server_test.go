package server_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServe(t *testing.T) {
	r := run(t, nil, nil)
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	for want := range 3 {
		r.want(t, "/api/segment/get/order", 200, fmt.Sprint(want+1))
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	rpc := leafv1connect.NewLeafServiceClient(&http.Client{Transport: transport}, "http://"+r.addr, connect.WithGRPC())
	if res, err := rpc.Next(t.Context(), &leafv1.NextRequest{Key: "order"}); err != nil || res.GetId() != 4 {
		t.Errorf("gRPC: %v, %v, want 4", res, err)
	}
	admin := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr)
	status, err := admin.Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || status.GetListen() != r.addr || status.GetVersion() != "v1.2.3" || status.GetStore().GetName() != "memory:" {
		t.Errorf("Status: %v, %v", status, err)
	}
	if _, err := admin.CreateTag(t.Context(), &leafv1.CreateTagRequest{Name: "user", Step: 1}); err != nil {
		t.Errorf("CreateTag on loopback: %v", err)
	}
	r.want(t, "/api/segment/get/user", 200, "1")

	r.wantStop(t)
	transport.CloseIdleConnections()
	if _, _, err := r.get("/healthz"); err == nil {
		t.Error("still accepts connections")
	}
	grant, err := r.store.Advance(t.Context(), "order", 1)
	if err != nil || grant.Range.Start != 5 {
		t.Errorf("the next range starts at %d, %v; want 5, one past the last ID", grant.Range.Start, err)
	}
	serving := fmt.Sprintf(`level=INFO msg=serving url=http://%s protocols="HTTP, gRPC" scheme=segment store=memory: version=v1.2.3`, r.addr)
	if got := r.log.String(); strings.Count(got, serving) != 1 || strings.Count(got, "\n") != 3 {
		t.Errorf("want one line at start, one for the new tag, one at the stop:\n%s", got)
	}
}

func TestPublicAddressChangesNoTags(t *testing.T) {
	r := run(t, nil, func(o *server.Options) { o.Config.Listen = "0.0.0.0:0" })
	_, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		t.Fatal(err)
	}
	admin := leafv1connect.NewAdminServiceClient(r.client, "http://127.0.0.1:"+port)
	_, err = admin.DeleteTag(t.Context(), &leafv1.DeleteTagRequest{Name: "order"})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("DeleteTag: %v, want permission_denied", err)
	}
}

// A request that waits for the store when the stop begins is answered.
func TestStopWaitsForRequests(t *testing.T) {
	r, release := runHeld(t, nil)
	answer := make(chan string, 1)
	go func() {
		status, body, err := r.get("/api/segment/get/order")
		answer <- fmt.Sprint(status, " ", body, " ", err)
	}()
	r.wantWaiting(t)
	r.stop()
	until(t, "closed for new connections", func() bool { _, _, err := r.get("/healthz"); return err != nil })
	select {
	case <-r.done:
		t.Fatalf("Run returned with a request in flight: %v", r.err)
	case got := <-answer:
		t.Fatalf("answered without the store: %s", got)
	default:
	}
	release()
	if got := <-answer; got != "200 1 <nil>" {
		t.Errorf("answer: %s", got)
	}
	r.wantStop(t)
	if got := r.store.Returned("order"); len(got) != 1 || got[0].Start != 2 {
		t.Errorf("given back: %v, want from 2", got)
	}
}

// A request that would wait for longer than the stop may take gets its error in time.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	r, _ := runHeld(t, func(o *server.Options) { o.Config.ShutdownTimeout = limit })
	answer := make(chan string, 1)
	go func() {
		status, body, err := r.get("/api/segment/get/order")
		answer <- fmt.Sprint(status, " ", body, " ", err)
	}()
	half, err := net.Dial("tcp", r.addr) // a client that never ends its request
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	fmt.Fprint(half, "GET / HTTP/1.1\r\n")
	r.wantWaiting(t)
	if took := r.wantStop(t); took < limit/2 || took > limit+20*time.Second {
		t.Errorf("the stop took %v, want about %v", took, limit)
	}
	if err := half.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := half.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection that never sends its request was not cut: %v", err)
	}
	if got := <-answer; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "the server is stopping") {
		t.Errorf("answer: %s", got)
	}
}

func TestStoreDownAtStart(t *testing.T) {
	r := run(t, func(drivertest.Call) drivertest.Fault {
		return drivertest.Fault{Before: errors.New("connection refused")}
	}, func(o *server.Options) { o.Config.Segment.Wait = 50 * time.Millisecond })
	r.want(t, "/healthz", 200, "ok")
	const reason = "not ready: the store is unavailable: no usable answer (the log of the server says more)"
	until(t, "the reason is known", func() bool { _, body, _ := r.get("/readyz"); return body == reason })
	r.want(t, "/readyz?verbose", 503, reason+"\n")
	r.want(t, "/api/segment/get/order", 500, "Result{id=-1, status=EXCEPTION}")
	status, err := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr).Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || status.GetStore().GetReachable() || !strings.Contains(status.GetStore().GetLastError(), "connection refused") || status.GetSchemes()[0].GetReady() {
		t.Errorf("Status: %v, %v", status, err)
	}
	r.store.Plan(nil)
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	until(t, "serves", func() bool { return r.status("/api/segment/get/order") == 200 })
}

// Between the signal and the stop the server is not ready but still serves.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Second
	r := run(t, nil, func(o *server.Options) { o.Config.DrainDelay = delay })
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	start := time.Now()
	r.stop()
	until(t, "not ready", func() bool { return r.status("/readyz") == 503 })
	r.want(t, "/readyz?verbose", 503, "not ready: the server is stopping")
	r.want(t, "/api/segment/get/order", 200, "1")
	r.wantStop(t)
	if took := time.Since(start); took < delay {
		t.Errorf("stopped after %v, want at least %v", took, delay)
	}
}

// A store that answers with nothing but its unfitness never was Java's 501.
func TestUnfitStore(t *testing.T) {
	r := run(t, func(drivertest.Call) drivertest.Fault {
		return drivertest.Fault{Before: fmt.Errorf("%w: max_id is of type int", leaf.ErrUnsupported)}
	}, func(o *server.Options) { o.Config.Segment.Wait = 50 * time.Millisecond })
	r.want(t, "/api/segment/get/order", 500, "Result{id=-1, status=EXCEPTION}")
	r.want(t, "/db", 500, "unfit for use")
	if log := r.log.String(); !strings.Contains(log, "max_id is of type int") {
		t.Errorf("the log:\n%s", log)
	}
	r.want(t, "/api/snowflake/get/order", 501, "scheme not enabled")
	r.store.Plan(nil)
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	r.store.Plan(func(drivertest.Call) drivertest.Fault {
		return drivertest.Fault{Before: fmt.Errorf("%w: max_id is of type int", leaf.ErrUnsupported)}
	})
	r.want(t, "/api/segment/get/other", 500, "Result{id=-3, status=EXCEPTION}")
}

// Messages name all interfaces as the configuration does.
func TestAddressAskedFor(t *testing.T) {
	for asked, want := range map[string]string{"0.0.0.0:0": "0.0.0.0:", ":0": "0.0.0.0:", "[::]:0": "[::]:", "127.0.0.1:0": "127.0.0.1:"} {
		r := run(t, nil, func(o *server.Options) { o.Config.Listen, o.Config.PublicRead = asked, true })
		_, port, err := net.SplitHostPort(r.addr)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "logs its address", func() bool { return strings.Contains(r.log.String(), "url=http://"+want+port+" ") })
		status, err := leafv1connect.NewAdminServiceClient(r.client, "http://127.0.0.1:"+port).Status(t.Context(), new(leafv1.StatusRequest))
		if asked != "[::]:0" && (err != nil || status.GetListen() != want+port) {
			t.Errorf("%s: Status says %q, %v; want %q", asked, status.GetListen(), err, want+port)
		}
		r.wantStop(t)
	}
}

// A tag's own trouble is not the store's.
func TestTroubleOfATag(t *testing.T) {
	locked := drivertest.Only(drivertest.OpAdvance, drivertest.Fault{Before: errors.New("row is locked")})
	r := run(t, locked, func(o *server.Options) { o.Config.Segment.Wait = 50 * time.Millisecond })
	r.want(t, "/api/segment/get/order", 500, "no usable answer")
	status, err := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr).Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || !status.GetStore().GetReachable() || status.GetStore().GetLastError() != "" {
		t.Errorf("the store: %v, %v; want no trouble", status.GetStore(), err)
	}
	if tags := status.GetTags(); len(tags) != 1 || !strings.Contains(tags[0].GetError(), "row is locked") {
		t.Errorf("the tags: %v", tags)
	}
}

func TestNewFails(t *testing.T) {
	fails := func(want string, edit func(*server.Options)) {
		t.Helper()
		opts := server.Options{Config: segmentOnly(t), Store: storeBackend(memory.New().Store())}
		closed := false
		opts.Store.DB = onClose(func() { closed = true })
		edit(&opts)
		if _, err := server.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) || !closed {
			t.Errorf("%v, want %q; the store was closed: %v", err, want, closed)
		}
	}
	fails("nothing is left to serve", func(o *server.Options) { o.Config.Segment.Enable = false })
	fails("the store has no file", func(o *server.Options) {
		o.Store.Tags.Unfit = errors.New("the store has no file")
	})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	fails(taken.Addr().String(), func(o *server.Options) { o.Config.Listen = taken.Addr().String() })
}

// The server loses and logs IDs that the store does not take back, and the stop is still orderly:
// with other servers on the store that is normal.
func TestGiveBackFails(t *testing.T) {
	r := run(t, drivertest.Only(drivertest.OpReturn, drivertest.Fault{Before: leaf.ErrClosed}), nil)
	r.want(t, "/api/segment/get/order", 200, "1")
	r.wantStop(t)
	if !strings.Contains(r.log.String(), "not taken back") {
		t.Errorf("log: %s", r.log)
	}
}

// Whatever a store calls its unfitness, no caller's argument was wrong; and one that
// becomes unfit later makes the server not ready, as long as it lasts.
func TestStoreBecomesUnfit(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{leaf.ErrInvalid, leaf.ErrUnsupported} {
		unfit := func(drivertest.Call) drivertest.Fault {
			return drivertest.Fault{Before: fmt.Errorf("%w: the URL names 2 of 3 servers", cause)}
		}
		r := run(t, unfit, func(o *server.Options) { o.Store.Traits.Ticket = true })
		r.want(t, "/api/segment/get/order", 500, "Result{id=-1, status=EXCEPTION}")
		r.want(t, "/api/ticket/get/order", 503, "unfit for use")
		until(t, "why it is not ready", func() bool { // the server asks the store in the background
			status, body, _ := r.get("/readyz")
			return status == 503 && strings.Contains(body, "unfit for use")
		})
		r.store.Plan(nil)
		until(t, "ready", func() bool { return r.status("/readyz") == 200 })
		until(t, "the tag has an ID", func() bool { return r.status("/api/segment/get/order") == 200 }) // its next attempt may be a moment away
		r.store.Plan(unfit)
		r.want(t, "/api/segment/get/order", 200, "2")
		r.want(t, "/readyz", 200, "ok") // from the stock
		r.want(t, "/api/segment/get/other", 500, "Result{id=-3, status=EXCEPTION}")
		until(t, "not ready", func() bool { return r.status("/readyz") == 503 })
		r.want(t, "/readyz", 503, "the store cannot be used: ")
		r.store.Plan(nil)
		until(t, "ready again", func() bool { return r.status("/readyz") == 200 })
		r.wantStop(t)
	}
}
