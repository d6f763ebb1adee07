package server_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/server"
)

// A stream of gRPC takes IDs, and ends with the reason when the server stops.
func TestGRPCStream(t *testing.T) { onBothPorts(t, testGRPCStream) }

func testGRPCStream(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, port)
	stream, err := r.grpc(t).NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, leafv1connect.LeafServiceStreamProcedure)
	if err != nil {
		t.Fatal(err)
	}
	for want := int64(1); want < 5; want++ {
		if err := stream.SendMsg(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{{Key: "order", Count: 1}}}); err != nil {
			t.Fatal(err)
		}
		var res leafv1.StreamResponse
		if err := stream.RecvMsg(&res); err != nil || res.GetAnswers()[0].GetRanges()[0].GetStart() != want {
			t.Fatalf("%v, %v, want %d", &res, err, want)
		}
	}
	r.stop()
	if err := stream.RecvMsg(new(leafv1.StreamResponse)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("at the stop: %v", err)
	}
	r.wantStop(t)
}

// Connect's client speaks gRPC on both ports, with details in its errors.
func TestConnectSpeaksGRPC(t *testing.T) { onBothPorts(t, testConnectSpeaksGRPC) }

func testConnectSpeaksGRPC(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, port)
	transport := &http.Transport{Protocols: protocols(false, true)}
	defer transport.CloseIdleConnections()
	ids := leafv1connect.NewLeafServiceClient(&http.Client{Transport: transport}, "http://"+r.rpc, connect.WithGRPC(), connect.WithSendGzip())
	if res, err := ids.Take(t.Context(), &leafv1.TakeRequest{Key: "order", Count: 500}); err != nil || res.GetRanges()[0].GetStart() != 1 {
		t.Errorf("%v, %v", res, err)
	}
	_, err := ids.Next(t.Context(), &leafv1.NextRequest{Key: "none"})
	if coded, ok := errors.AsType[*connect.Error](err); !ok || coded.Code() != connect.CodeNotFound || len(coded.Details()) == 0 {
		t.Errorf("%v", err)
	}
	if _, err := ids.Next(t.Context(), &leafv1.NextRequest{Key: strings.Repeat("k", 70_000)}); connect.CodeOf(err) == connect.CodeUnknown || err == nil {
		t.Errorf("a long message: %v", err)
	}
}

// At a stop an idle connection learns at once that it should make its next call elsewhere.
func TestGRPCGoAway(t *testing.T) { onBothPorts(t, testGRPCGoAway) }

func testGRPCGoAway(t *testing.T, port func(*server.Options)) {
	r := run(t, nil, port)
	c := r.rawH2(t)
	if err := c.request("application/grpc"); err != nil {
		t.Fatal(err)
	}
	c.status(t, grpcBody)
	r.stop()
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := frame.(*http2.GoAwayFrame); ok {
			return
		}
	}
}

// The deadline of a call ends its wait on the server.
func TestGRPCDeadline(t *testing.T) { onBothPorts(t, testGRPCDeadline) }

func testGRPCDeadline(t *testing.T, port func(*server.Options)) {
	r, _ := runHeld(t, port)
	c := r.rawH2(t)
	if err := c.request("application/grpc", "grpc-timeout", "100m"); err != nil {
		t.Fatal(err)
	}
	if err := c.framer.WriteData(c.streams-1, true, []byte(grpcBody)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if reset, ok := frame.(*http2.RSTStreamFrame); ok && reset.StreamID == c.streams-1 {
			return // grpc-go may end it before the answer
		}
		head, ok := frame.(*http2.MetaHeadersFrame)
		if !ok {
			continue
		}
		for _, field := range head.Fields {
			if field.Name == "grpc-status" {
				canceled := fmt.Sprint(uint32(codes.Canceled)) // by a timer of grpc-go, just before the context's
				if field.Value != fmt.Sprint(uint32(codes.DeadlineExceeded)) && field.Value != canceled {
					t.Errorf("status %s", field.Value)
				}
				return
			}
		}
	}
}

// The port has the limits of the others, and its own metrics.
func TestGRPCPortIsBounded(t *testing.T) {
	r := run(t, nil, func(o *server.Options) {
		withGRPC(o)
		o.Config.Limits.ConnectionsPerClient = 2
		o.SetAnswerTimeout(time.Second)
	})
	until(t, "logs its address", func() bool { return strings.Contains(r.log.String(), " grpc="+r.rpc+" ") })
	first := r.rawH2(t)
	if err := first.request("application/grpc"); err != nil {
		t.Fatal(err)
	}
	first.status(t, grpcBody)
	unread := dialTo(t, r.rpc)
	fmt.Fprint(unread, http2.ClientPreface, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	until(t, "both are counted", func() bool {
		_, body, _ := r.get("/metrics")
		return strings.Contains(body, `leaf_connections{port="grpc"} 2`)
	})
	wantCut(t, dialTo(t, r.rpc))
	r.want(t, "/metrics", 200, `leaf_connections_refused_total{port="grpc"} 1`)
	if log := r.log.String(); !strings.Contains(log, "limits.connections_per_client") {
		t.Errorf("the log says nothing:\n%s", log)
	}
	var err error
	for ping := "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"; err == nil; { // until no buffer takes more, and the server gives up
		_, err = io.WriteString(unread, strings.Repeat(ping, 100))
	}
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("a client that does not read is kept")
	}
}

// With certificates both ports are encrypted, and the certificate of a client has its rights.
func TestGRPCWithTLS(t *testing.T) {
	clients := sign(t, "clients", nil)
	ca, tokens := filepath.Join(t.TempDir(), "clients"), filepath.Join(t.TempDir(), "tokens.yaml")
	clients.write(t, ca)
	if err := os.WriteFile(tokens, []byte("tokens: [{name: shop, certificate: shop.example, take: [order]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := runTLS(t, func(o *server.Options) {
		withGRPC(o)
		o.Config.TLS.ClientCA, o.Config.TokensFile = ca+".pem", tokens
	})
	for name, want := range map[string]codes.Code{"shop.example": codes.OK, "x": codes.Unauthenticated} {
		conf := &tls.Config{RootCAs: e.root.pool(), Certificates: sign(t, name, clients).pair()}
		for _, addr := range []string{e.addr, e.rpc} {
			conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := next(t.Context(), conn, "order"); status.Code(err) != want {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
	if _, err := next(t.Context(), e.grpc(t), "order"); err == nil {
		t.Error("served without TLS")
	}
}

// Calls on the port have spans in their callers' traces.
func TestGRPCPortTraces(t *testing.T) {
	c := newCollector(t)
	r := run(t, nil, func(o *server.Options) {
		withGRPC(o)
		o.Config.Traces = c.URL
	})
	conn := r.grpc(t)
	for i, key := range []string{"order", "none"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+traceID(i+1)+"-"+callerSpan+"-01")
		if _, err := next(ctx, conn, key); (err == nil) != (i == 0) {
			t.Error(err)
		}
	}
	_ = conn.Close()
	r.wantStop(t)
	good, bad := c.one(t, "leaf.v1.LeafService/Next", traceID(1)), c.one(t, "leaf.v1.LeafService/Next", traceID(2))
	if good.parent != callerSpan || !strings.Contains(good.about["leaf.key"], "order") || !strings.Contains(bad.about["error.type"], "UNKNOWN_TAG") {
		t.Errorf("%+v, %+v", good, bad)
	}
	if call := c.one(t, "store advance", traceID(1)); call.parent != good.id {
		t.Errorf("the call of the store is %+v, want it below %+v", call, good)
	}
}

func TestGRPCPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	opts := server.Options{Config: segmentOnly(t), Store: storeBackend(memory.New().Store())}
	opts.Config.GRPC = taken.Addr().String()
	_, err = server.New(t.Context(), opts)
	if port, ok := errors.AsType[*server.PortError](err); !ok || port.FrontEnd.Key != "grpc" || !strings.Contains(err.Error(), opts.Config.GRPC) {
		t.Error(err)
	}
}

// Where other machines reach the port of gRPC alone, administrators need a token on all ports.
func TestGRPCPortForAll(t *testing.T) {
	r := run(t, nil, func(o *server.Options) { o.Config.GRPC = "0.0.0.0:0" })
	_, port, err := net.SplitHostPort(r.rpc)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"127.0.0.1:" + port, r.addr} {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		err = conn.Invoke(t.Context(), leafv1connect.AdminServiceDeleteTagProcedure, &leafv1.DeleteTagRequest{Name: "order"}, new(leafv1.DeleteTagResponse))
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", addr, err)
		}
		if _, err := next(t.Context(), conn, "order"); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
