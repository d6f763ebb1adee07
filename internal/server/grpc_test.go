package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server"
)

func withGRPC(o *server.Options) { o.Config.GRPC = "127.0.0.1:0" }

// onBothPorts runs a test with gRPC on the port of HTTP, and on a port of its own.
func onBothPorts(t *testing.T, test func(t *testing.T, port func(*server.Options))) {
	t.Run("port of HTTP", func(t *testing.T) { test(t, func(*server.Options) {}) })
	t.Run("port of its own", func(t *testing.T) { test(t, withGRPC) })
}

// grpc connects a client of gRPC, without a call yet.
func (r *running) grpc(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func next(ctx context.Context, conn *grpc.ClientConn, key string, opts ...grpc.CallOption) (int64, error) {
	var res leafv1.NextResponse
	err := conn.Invoke(ctx, leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: key}, &res, opts...)
	return res.GetId(), err
}

// reasonOf is the reason in the details of an error.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// A client of gRPC has its calls, compressed or not, and each error, on one connection.
func TestGRPC(t *testing.T) { onBothPorts(t, testGRPC) }

func testGRPC(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, port)
	conn := r.grpc(t)
	for want, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}, nil} {
		if id, err := next(t.Context(), conn, "order", opts...); err != nil || id != int64(want+1) {
			t.Errorf("%d, %v, want %d", id, err, want+1)
		}
	}
	if _, err := next(t.Context(), conn, "nope"); status.Code(err) != codes.NotFound || reasonOf(err) != "UNKNOWN_TAG" {
		t.Errorf("unknown tag: %v", err)
	}
	if _, err := next(t.Context(), conn, strings.Repeat("k", 70_000)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a long message: %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := next(late, conn, "order"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("after the deadline: %v", err)
	}
	for _, want := range []string{`leaf_request_duration_seconds_count{front_end="grpc"} 4`, `leaf_request_errors_total{cause="UNKNOWN_TAG",front_end="grpc"} 1`} {
		if _, body, err := r.get("/metrics"); err != nil || !strings.Contains(body, want) {
			t.Errorf("metrics: no %s in\n%s", want, body)
		}
	}
}

// A call that waits for the store is answered when the server stops meanwhile, and idle
// connections are closed at once.
func TestGRPCDrains(t *testing.T) { onBothPorts(t, testGRPCDrains) }

func testGRPCDrains(t *testing.T, port func(*server.Options)) {
	r, release := runHeld(t, port)
	waiting, idle := r.grpc(t), r.grpc(t)
	if err := idle.Invoke(t.Context(), leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Scheme: "uuid"}, new(leafv1.NextResponse)); err != nil {
		t.Fatal(err)
	}
	ids := make(chan int64)
	go func() {
		id, err := next(t.Context(), waiting, "order")
		if err != nil {
			t.Error(err)
		}
		ids <- id
	}()
	r.wantWaiting(t)
	r.stop()
	until(t, "closed for new connections", func() bool { _, err := net.Dial("tcp", r.rpc); return err != nil })
	release()
	if id := <-ids; id != 1 {
		t.Errorf("the call that waited: %d", id)
	}
}

// A call that still waits late in a stop gets the reason.
func TestGRPCTellsOfTheStop(t *testing.T) {
	t.Parallel()
	onBothPorts(t, testGRPCTellsOfTheStop)
}

func testGRPCTellsOfTheStop(t *testing.T, port func(*server.Options)) {
	r, _ := runHeld(t, func(o *server.Options) {
		port(o)
		o.Config.ShutdownTimeout = 2 * time.Second
	})
	conn := r.grpc(t)
	failed := make(chan error)
	for key, procedure := range map[string]string{"order": leafv1connect.LeafServiceNextProcedure, "user": leafv1connect.LeafServiceTakeProcedure} {
		go func() {
			failed <- conn.Invoke(t.Context(), procedure, &leafv1.TakeRequest{Key: key, Count: 1}, new(leafv1.TakeResponse))
		}()
	}
	until(t, "both wait for the store", func() bool { return r.store.Calls(drivertest.OpAdvance) == 2 })
	r.stop()
	for range 2 {
		if err := <-failed; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the server is stopping") {
			t.Errorf("%v (%s)", err, reasonOf(err))
		}
	}
	r.wantStop(t)
}

func TestGRPCAccessLog(t *testing.T) { onBothPorts(t, testGRPCAccessLog) }

func testGRPCAccessLog(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, func(o *server.Options) {
		port(o)
		o.Config.Log.Access = 1
	})
	conn := r.grpc(t)
	if _, err := next(t.Context(), conn, "order"); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	r.wantStop(t)
	if log := r.log.String(); strings.Count(log, "msg=access") != 1 || !strings.Contains(log, "path="+leafv1connect.LeafServiceNextProcedure) || !strings.Contains(log, "agent=grpc-go/") || !strings.Contains(log, "token=anonymous") {
		t.Errorf("the log:\n%s", log)
	}
}

// A rawH2 is an HTTP/2 connection without a library's manners.
type rawH2 struct {
	net.Conn
	framer  *http2.Framer
	head    bytes.Buffer
	encoder *hpack.Encoder
	streams uint32
}

func (r *running) rawH2(t *testing.T) *rawH2 {
	t.Helper()
	c := &rawH2{Conn: dialTo(t, r.rpc)}
	fmt.Fprint(c, http2.ClientPreface)
	c.framer, c.encoder = http2.NewFramer(c, c), hpack.NewEncoder(&c.head)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c
}

// request begins a request for an ID; it has no body yet.
func (c *rawH2) request(content string, fields ...string) error {
	c.head.Reset()
	all := append([]string{":method", "POST", ":scheme", "http", ":authority", "localhost", ":path", leafv1connect.LeafServiceNextProcedure,
		"content-type", content, "user-agent", "grpc-test/1", "te", "trailers"}, fields...)
	for pair := range slices.Chunk(all, 2) {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1]}) // a buffer takes all
	}
	c.streams += 2
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.streams - 1, BlockFragment: c.head.Bytes(), EndHeaders: true})
}

// status sends the body of the last request, and returns the status of the answer.
func (c *rawH2) status(t *testing.T, body string) string {
	t.Helper()
	if err := c.framer.WriteData(c.streams-1, true, []byte(body)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if head, ok := frame.(*http2.MetaHeadersFrame); ok && head.StreamID == c.streams-1 && head.PseudoValue("status") != "" {
			return head.PseudoValue("status")
		}
	}
}

const (
	grpcBody = "\x00\x00\x00\x00\x07\x12\x05order"
	jsonBody = `{"key":"order"}`
)

// A connection to the port of HTTP has all protocols. One to the port for gRPC has no other.
func TestProtocolsOfAConnection(t *testing.T) {
	for _, tt := range []struct {
		port          func(*server.Options)
		content, want string
	}{
		{nil, "application/grpc", "200"},
		{nil, "application/grpc-web+proto", "200"},
		{withGRPC, "application/grpc", "415"},
	} {
		c := run(t, nil, tt.port).rawH2(t)
		if err := c.request(tt.content); err != nil {
			t.Fatal(err)
		}
		if got := c.status(t, grpcBody); got != "200" {
			t.Errorf("%s: %s", tt.content, got)
		}
		if err := c.request("application/json"); err != nil {
			t.Fatal(err)
		}
		if got := c.status(t, jsonBody); got != tt.want {
			t.Errorf("%s, then JSON: %s, want %s", tt.content, got, tt.want)
		}
		_ = c.Close()
	}
}

// Silent clients, and clients that never finish a request, hold up neither others nor the stop.
func TestUnfinishedHTTP2(t *testing.T) {
	t.Parallel()
	onBothPorts(t, testUnfinishedHTTP2)
}

func testUnfinishedHTTP2(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, port)
	for _, begin := range []string{"P", "PRI * HTTP/2.0\r\n\r\nSM", http2.ClientPreface, http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		http2.ClientPreface + "\xff\xff\xff\x04\x00\x00\x00\x00\x00", http2.ClientPreface + strings.Repeat("\x00\x00\x05\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00", 100)} {
		fmt.Fprint(dialTo(t, r.rpc), begin)
	}
	half := dialTo(t, r.rpc).(*net.TCPConn)
	fmt.Fprint(half, "P")
	_ = half.CloseWrite()
	if _, err := io.Copy(io.Discard, half); err != nil {
		t.Error(err)
	}
	if id, err := next(t.Context(), r.grpc(t), "order"); err != nil || id != 1 {
		t.Errorf("next to them: %d, %v", id, err)
	}
	if took := r.wantStop(t); took > 15*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// A client that pings before its first call gets an answer.
func TestPingBeforeACall(t *testing.T) { onBothPorts(t, testPingBeforeACall) }

func testPingBeforeACall(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, port)
	c := r.rawH2(t)
	if err := c.framer.WritePing(false, [8]byte{1}); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
			break
		}
	}
	if err := c.request("application/grpc"); err != nil {
		t.Fatal(err)
	}
	if got := c.status(t, grpcBody); got != "200" {
		t.Error(got)
	}
}

// Calls that begin and reset as fast as possible do not pile up.
func TestRapidResetOfGRPC(t *testing.T) { onBothPorts(t, testRapidResetOfGRPC) }

func testRapidResetOfGRPC(t *testing.T, port func(*server.Options)) {
	const calls, most = 5000, 1000 // goroutines
	r, _ := runHeld(t, port)
	c := r.rawH2(t)
	go func() { _, _ = io.Copy(io.Discard, c.Conn) }() // the server's part of the conversation
	var err error
	for i := 0; i < calls && err == nil; i++ {
		if err = c.request("application/grpc"); err == nil {
			err = c.framer.WriteData(c.streams-1, false, []byte(grpcBody))
		}
		if err == nil {
			err = c.framer.WriteRSTStream(c.streams-1, http2.ErrCodeCancel)
		}
		if n := runtime.NumGoroutine(); n > most {
			t.Fatalf("%d goroutines after %d calls", n, i)
		}
	}
	r.want(t, "/healthz", 200, "ok") // whether or not the server has ended the other connection: err
}
