package rpcapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/segment"
)

func newGRPC(listen net.Addr, b frontend.Options) *rpcapi.GRPC {
	b.Context, b.Logger, b.AnswerTimeout = context.Background(), slog.New(slog.DiscardHandler), time.Minute
	return rpcapi.NewGRPCWithin(complete(listen, b), 100*time.Millisecond)
}

// serveGRPC starts the services over b as grpc-go serves them.
func serveGRPC(t *testing.T, listen net.Addr, b frontend.Options) *grpc.ClientConn {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newGRPC(listen, b)
	go func() { _ = s.Serve(port) }() // ends with Stop
	t.Cleanup(s.Close)
	return dial(t, "http://"+port.Addr().String())
}

// orders returns the services of a server with the tag "order": step 10, from 100.
func orders(t *testing.T) frontend.Options {
	t.Helper()
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 100, Step: 10}); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, nil)
	t.Cleanup(func() { _ = set.Close(context.Background()) })
	<-set.Ready()
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, &issuer.Options{MaxBatch: 1000, MaxRange: 1000})
	return frontend.Options{IDs: ids, Tags: issuer.NewTags(store, set.Server(), nil)}
}

// withTokens returns a gate that knows a token, which may take 3 orders.
func withTokens(t *testing.T) (gate *access.Gate, token string) {
	t.Helper()
	token = access.NewToken()
	text := fmt.Sprintf("tokens:\n- {name: shop, hash: %q, take: [order], limits: {quota: 3}}\n", access.HashToken(token))
	return testgate.New(t, access.Options{}, text), token
}

// Every call of every service is there, and nothing else but health checks and reflection.
func TestGRPCServices(t *testing.T) {
	server := newGRPC(loopback, frontend.Options{IDs: issuer.New(nil, nil)})
	defer server.Close()
	got := server.Services()
	for _, file := range []protoreflect.FileDescriptor{leafv1.File_leaf_v1_leaf_proto, leafv1.File_leaf_v1_admin_proto, leafv1.File_leaf_v1_worker_proto} {
		service := file.Services().Get(0)
		var want, have []string
		for i := range service.Methods().Len() {
			want = append(want, string(service.Methods().Get(i).Name()))
		}
		for _, m := range got[string(service.FullName())].Methods {
			have = append(have, m.Name)
		}
		slices.Sort(want)
		slices.Sort(have)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", service.FullName(), diff)
		}
		delete(got, string(service.FullName()))
	}
	if len(got) != 3 {
		t.Errorf("others: %v", got)
	}
}

// Whichever server has a connection, a client is answered alike: in words, codes, details and
// metadata.
func TestGRPCAnswersAlike(t *testing.T) {
	var b [2]frontend.Options
	var tokens [2]string
	for i := range b {
		b[i] = orders(t)
		b[i].Route = func() []string { return []string{"A", "B"} }
		b[i].Access, tokens[i] = withTokens(t)
	}
	servers := [2]*grpc.ClientConn{dial(t, serveBackend(t, everyone, b[0]).url), serveGRPC(t, everyone, b[1])}
	for i, c := range []struct {
		procedure string
		req       proto.Message
		token     bool
		res       proto.Message
	}{
		{leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: "order"}, true, new(leafv1.NextResponse)},
		{leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: "order"}, false, new(leafv1.NextResponse)},
		{leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: "nope"}, true, new(leafv1.NextResponse)},
		{leafv1connect.LeafServiceTakeProcedure, &leafv1.TakeRequest{Key: "order", Count: -1}, true, new(leafv1.TakeResponse)},
		{leafv1connect.LeafServiceTakeProcedure, &leafv1.TakeRequest{Key: "order", Count: 2}, true, new(leafv1.TakeResponse)},
		{leafv1connect.LeafServiceTakeProcedure, &leafv1.TakeRequest{Key: "order", Count: 1}, true, new(leafv1.TakeResponse)},
		{leafv1connect.LeafServiceAdvanceProcedure, &leafv1.AdvanceRequest{Tag: "order", Count: 1}, true, new(leafv1.AdvanceResponse)},
		{leafv1connect.LeafServiceDecodeProcedure, &leafv1.DecodeRequest{Layout: "nope", Id: 1}, true, new(leafv1.DecodeResponse)},
		{leafv1connect.AdminServiceListTagsProcedure, new(leafv1.ListTagsRequest), true, new(leafv1.ListTagsResponse)},
		{leafv1connect.AdminServiceCreateTagProcedure, &leafv1.CreateTagRequest{Name: "a", Step: 1}, false, new(leafv1.CreateTagResponse)},
		{leafv1connect.WorkerServiceClockProcedure, new(leafv1.ClockRequest), true, new(leafv1.ClockResponse)},
		{healthpb.Health_Check_FullMethodName, &healthpb.HealthCheckRequest{Service: "segment"}, false, new(healthpb.HealthCheckResponse)},
		{healthpb.Health_Check_FullMethodName, &healthpb.HealthCheckRequest{Service: "nope"}, false, new(healthpb.HealthCheckResponse)},
	} {
		var answers [2][]any
		for j, conn := range servers {
			ctx := t.Context()
			if c.token {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+tokens[j])
			}
			proto.Reset(c.res)
			var header, trailer metadata.MD
			err := conn.Invoke(ctx, c.procedure, c.req, c.res, grpc.Header(&header), grpc.Trailer(&trailer))
			all := metadata.Join(header, trailer)
			answers[j] = []any{proto.Clone(c.res), status.Convert(err).Proto(), all.Get(hops.Route), len(all.Get("retry-after")), all.Get("www-authenticate")}
		}
		if diff := cmp.Diff(answers[0], answers[1], protocmp.Transform(), protocmp.IgnoreMessages(new(durationpb.Duration))); diff != "" {
			t.Errorf("call %d, of %s: %s", i, c.procedure, diff)
		}
	}
}

// A page whose host name leads here changes nothing, and reads nothing.
func TestGRPCOfAnotherHost(t *testing.T) {
	b := orders(t)
	conn := serveGRPC(t, loopback, b)
	for procedure, want := range map[string]codes.Code{leafv1connect.AdminServiceListTagsProcedure: codes.PermissionDenied, leafv1connect.LeafServiceDecodeProcedure: codes.OK} {
		err := conn.Invoke(t.Context(), procedure, &leafv1.DecodeRequest{Id: 1}, new(leafv1.DecodeResponse), grpc.CallAuthority("rebound.example"))
		if status.Code(err) != want {
			t.Errorf("%s: %v", procedure, err)
		}
	}
}

func TestGRPCReflection(t *testing.T) {
	client := reflectionpb.NewServerReflectionClient(serveGRPC(t, loopback, frontend.Options{IDs: issuer.New(nil, nil)}))
	stream, err := client.ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	req := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: leafv1connect.LeafServiceName}}
	if err := stream.Send(req); err != nil {
		t.Fatal(err)
	}
	if res, err := stream.Recv(); err != nil || len(res.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("%v, %v", res, err)
	}
	_ = stream.CloseSend()
}

func openStream(ctx context.Context, t *testing.T, conn *grpc.ClientConn, procedure string) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, procedure)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestGRPCStream(t *testing.T) {
	stream := openStream(t.Context(), t, serveGRPC(t, loopback, orders(t)), leafv1connect.LeafServiceStreamProcedure)
	for want := int64(100); want < 110; want += 2 {
		if err := stream.SendMsg(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{ask("order", 1), ask("nope", 1), ask("order", 1)}}); err != nil {
			t.Fatal(err)
		}
		var res leafv1.StreamResponse
		if err := stream.RecvMsg(&res); err != nil {
			t.Fatal(err)
		}
		if a := res.GetAnswers(); len(a) != 3 || a[0].GetRanges()[0].GetStart() != want || a[1].GetError().GetReason() != "UNKNOWN_TAG" || a[2].GetRanges()[0].GetStart() != want+1 {
			t.Errorf("%v, want %d", &res, want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if err := stream.RecvMsg(new(leafv1.StreamResponse)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestGRPCStreamIsRefused(t *testing.T) {
	b := orders(t)
	b.Access, _ = withTokens(t)
	stream := openStream(t.Context(), t, serveGRPC(t, everyone, b), leafv1connect.LeafServiceStreamProcedure)
	if err := stream.RecvMsg(new(leafv1.StreamResponse)); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

// take takes an order over a stream and returns the reason of an error.
func take(t *testing.T, stream grpc.ClientStream) (reason string) {
	t.Helper()
	if err := stream.SendMsg(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{ask("order", 1)}}); err != nil {
		t.Fatal(err)
	}
	var res leafv1.StreamResponse
	if err := stream.RecvMsg(&res); err != nil {
		t.Fatal(err)
	}
	return res.GetAnswers()[0].GetError().GetReason()
}

// The first limit or token of a server reaches open streams by their address and token.
func TestStreamOutlivesAReload(t *testing.T) {
	for name, serve := range map[string]func(*access.Gate) *grpc.ClientConn{
		"net/http": func(gate *access.Gate) *grpc.ClientConn { return dial(t, serveGated(t, gate).url) },
		"grpc-go": func(gate *access.Gate) *grpc.ClientConn {
			b := orders(t)
			b.Access = gate
			return serveGRPC(t, loopback, b)
		},
	} {
		gate, token := access.New(access.Options{}), access.NewToken()
		conn := serve(gate)
		known := openStream(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), t, conn, leafv1connect.LeafServiceStreamProcedure)
		unknown := openStream(t.Context(), t, conn, leafv1connect.LeafServiceStreamProcedure)
		want := func(when, ofKnown, ofUnknown string) {
			t.Helper()
			if a, b := take(t, known), take(t, unknown); a != ofKnown || b != ofUnknown {
				t.Errorf("%s, %s: %q with a token, %q without; want %q and %q", name, when, a, b, ofKnown, ofUnknown)
			}
		}
		want("open", "", "")
		limited, err := gate.Prepare(false, access.Limits{Client: access.Limit{Quota: 2}}, "")
		if err != nil {
			t.Fatal(err)
		}
		limited()
		want("within the limit", "", "")
		want("over the limit", "RATE_LIMITED", "RATE_LIMITED")
		testgate.Require(t, gate, access.Options{}, fmt.Sprintf("tokens:\n- {name: shop, hash: %q, take: [order]}\n", access.HashToken(token)))
		want("with tokens", "", "UNAUTHENTICATED")
	}
}

func TestGRPCStreamEndsWithTheServer(t *testing.T) {
	stopping := make(chan struct{})
	stream := openStream(t.Context(), t, serveGRPC(t, loopback, frontend.Options{IDs: issuer.New(nil, nil), Stopping: stopping}), leafv1connect.LeafServiceStreamProcedure)
	close(stopping)
	if err := stream.RecvMsg(new(leafv1.StreamResponse)); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

// A client that begins a call and never sends its message gets a time-out.
func TestGRPCWithoutMessage(t *testing.T) {
	stream := openStream(t.Context(), t, serveGRPC(t, loopback, orders(t)), leafv1connect.LeafServiceNextProcedure)
	if err := stream.RecvMsg(new(leafv1.NextResponse)); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}

// faulty is a source with a fault in it.
type faulty struct{ issuer.Source }

func (faulty) Next(context.Context, string) (issuer.ID, error) { panic("a fault") }

// A fault in one call ends no other, and not the server.
func TestGRPCFault(t *testing.T) {
	conn := serveGRPC(t, loopback, frontend.Options{IDs: issuer.New(map[string]issuer.Source{issuer.Segment: faulty{}}, nil)})
	var res leafv1.NextResponse
	for range 2 {
		if err := conn.Invoke(t.Context(), leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: "order"}, &res); status.Code(err) != codes.Internal {
			t.Error(err)
		}
	}
	stream := openStream(t.Context(), t, conn, leafv1connect.LeafServiceStreamProcedure)
	if err := stream.SendMsg(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{ask("order", 1)}}); err != nil {
		t.Error(err)
	}
	if err := stream.RecvMsg(new(leafv1.StreamResponse)); status.Code(err) != codes.Internal {
		t.Error(err)
	}
	if err := conn.Invoke(t.Context(), leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Scheme: "uuid"}, &res); err != nil {
		t.Error(err)
	}
}
