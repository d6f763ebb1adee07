package rpcapi_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// dial connects to a server as any gRPC client does.
func dial(t *testing.T, url string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// refusing is a source that fails with err.
type refusing struct{ err error }

func (f refusing) Next(context.Context, string) (int64, error) { return 0, f.err }
func (f refusing) Take(_ context.Context, _ string, dst []leaf.Range, _ int) ([]leaf.Range, error) {
	return dst, f.err
}

func TestHealth(t *testing.T) {
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(refusing{})}, nil)
	f := serveBackend(t, everyone, frontend.Options{IDs: ids, Health: func() health.Report {
		down := health.Condition{Name: health.StoreSilent, Schemes: []string{issuer.Segment}, Down: true, Err: errors.New("not yet")}
		return health.Report{Conditions: []health.Condition{down}}
	}})
	client := healthpb.NewHealthClient(dial(t, f.url))
	for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{
		"":                      healthpb.HealthCheckResponse_NOT_SERVING,
		"leaf.v1.LeafService":   healthpb.HealthCheckResponse_NOT_SERVING,
		"segment":               healthpb.HealthCheckResponse_NOT_SERVING,
		"uuid":                  healthpb.HealthCheckResponse_SERVING,
		"leaf.v1.AdminService":  healthpb.HealthCheckResponse_SERVING,
		"grpc.health.v1.Health": healthpb.HealthCheckResponse_SERVING,
	} {
		res, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || res.GetStatus() != want {
			t.Errorf("%q: %v, %v; want %v", service, res.GetStatus(), err, want)
		}
	}
	for _, service := range []string{"snowflake", "nope"} {
		if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service}); status.Code(err) != codes.NotFound {
			t.Errorf("%q: %v", service, err)
		}
	}
}

func TestReflection(t *testing.T) {
	conn := dial(t, serve(t, everyone).url)
	for _, version := range []string{"v1", "v1alpha"} {
		t.Run(version, func(t *testing.T) {
			stream := openStream(t.Context(), t, conn, "/grpc.reflection."+version+".ServerReflection/ServerReflectionInfo")
			ask := func(req *reflectionv1.ServerReflectionRequest) (*reflectionv1.ServerReflectionResponse, error) {
				res := new(reflectionv1.ServerReflectionResponse)
				return res, cmp.Or(stream.SendMsg(req), stream.RecvMsg(res))
			}
			res, err := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
			services := res.GetListServicesResponse().GetService()
			if err != nil || len(services) != 4 {
				t.Errorf("%v: %v", services, err)
			}
			for _, service := range services {
				res, err := ask(&reflectionv1.ServerReflectionRequest{
					MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service.GetName()}})
				if err != nil || len(res.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
					t.Errorf("%s: %v, %v", service.GetName(), res, err)
				}
			}
			if res, err := ask(&reflectionv1.ServerReflectionRequest{}); status.Code(err) != codes.InvalidArgument {
				t.Errorf("empty request: %v, %v", res, err)
			}
		})
	}
}

// A client that has no more questions ends the stream.
func TestReflectionEnds(t *testing.T) {
	stream := openStream(t.Context(), t, dial(t, serve(t, everyone).url), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if err := stream.RecvMsg(new(reflectionv1.ServerReflectionResponse)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// A client of any kind learns why a call failed, and when it may succeed.
func TestErrorDetails(t *testing.T) {
	tests := []struct {
		err    error
		code   codes.Code
		reason string
		retry  time.Duration
	}{
		{leaf.ErrExhausted, codes.Unavailable, "EXHAUSTED", time.Second},
		{leaf.ErrNoLease, codes.Unavailable, "NO_WORKER_ID", time.Second},
		{leaf.ErrUnknownTag, codes.NotFound, "UNKNOWN_TAG", 0},
		{&access.LimitError{RetryAfter: 2500 * time.Millisecond}, codes.ResourceExhausted, "RATE_LIMITED", 2500 * time.Millisecond},
	}
	for _, tt := range tests {
		ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(refusing{fmt.Errorf("wrapped: %w", tt.err)})}, nil)
		f := serveBackend(t, everyone, frontend.Options{IDs: ids})
		err := dial(t, f.url).Invoke(t.Context(), "/leaf.v1.LeafService/Next", &leafv1.NextRequest{Key: "k"}, new(leafv1.NextResponse))
		info, retry := details(status.Convert(err))
		if status.Code(err) != tt.code || info.GetReason() != tt.reason || info.GetDomain() != "github.com/leaf-id/leaf" || retry.GetRetryDelay().AsDuration() != tt.retry {
			t.Errorf("%v: %v, %v, %v", tt.err, err, info, retry)
		}
		_, err = f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "k"})
		if connected, ok := errors.AsType[*connect.Error](err); !ok || len(connected.Details()) == 0 {
			t.Errorf("Connect: %v has no details", err)
		}
	}
}

func details(s *status.Status) (info *errdetails.ErrorInfo, retry *errdetails.RetryInfo) {
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	return info, retry
}
