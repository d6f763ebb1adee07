package rpcapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// GRPCOptions configures the server that [NewGRPC] returns.
type GRPCOptions struct {
	Stop           context.Context // when it ends, so do calls that wait, with its cause
	MaxStreams     uint32          // calls at a time on a connection
	MaxHeaderBytes uint32          // of a call
	IdleTimeout    time.Duration   // how long a connection may be without a call
	BodyTimeout    time.Duration   // how long a client may take to send the message of a call
	Logger         *slog.Logger

	// Log receives each finished call.
	Log func(procedure, from string, header func() http.Header, began time.Time)
}

// NewGRPC returns a grpc-go server with the services that [Register] adds to a mux. It serves
// connections for gRPC alone, at a third of net/http's CPU time.
func NewGRPC(opts *frontend.Options, o *GRPCOptions) *grpc.Server {
	g := &grpcServer{opts: opts, GRPCOptions: o}
	const workersPerCPU = 16 // whose stacks have grown already
	const window = 1<<16 - 1 // the smallest; a fixed size saves the pings that would search a better one
	pool := &chargingPool{small: mem.DefaultBufferPool(), unsent: opts.Unsent}
	s := grpc.NewServer(
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), pool}),
		experimental.BufferPool(pool),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(o.MaxStreams),
		grpc.MaxHeaderListSize(o.MaxHeaderBytes),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.NumStreamWorkers(uint32(workersPerCPU*runtime.GOMAXPROCS(0))),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: o.IdleTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(g.boundBody),
	)
	g.register(s)
	return s
}

// A grpcServer serves the calls of one server.
type grpcServer struct {
	*GRPCOptions
	opts *frontend.Options
}

// A grpcService serves those of one service.
type grpcService struct {
	*grpcServer
	requests *telemetry.Requests
	tell     tell
	route    func() []string                       // nil: IDs come from nowhere else
	prepare  func(context.Context) context.Context // of a call; nil: nothing
}

// A bounded context ends where the message of a call has not come in time.
type bounded struct {
	context.Context
	call   context.Context    // outlives the connection's context until the call has ended
	cancel context.CancelFunc // which then needs no call
}

type boundedKey struct{}

// Value implements [context.Context].
func (b *bounded) Value(key any) any {
	if key == (boundedKey{}) {
		return b
	}
	return b.Context.Value(key)
}

// boundBody bounds how long the message of a call may take to come in. A stream has bounds of
// its own.
func (g *grpcServer) boundBody(ctx context.Context, info *tap.Info) (context.Context, error) {
	if info.FullMethodName == leafv1connect.LeafServiceStreamProcedure {
		return ctx, nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < g.BodyTimeout {
		return ctx, nil
	}
	inner, cancel := context.WithTimeout(ctx, g.BodyTimeout)
	return &bounded{inner, ctx, cancel}, nil
}

// unary makes a call of a service one of grpc-go's.
func unary[Req, Res any](s *grpcService, procedure string, call func(context.Context, *Req) (*Res, error)) grpc.MethodDesc {
	serve := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		req := new(Req)
		if err := decode(req); err != nil {
			return nil, status.Error(codes.InvalidArgument, status.Convert(err).Message())
		}
		var res *Res
		err := s.serve(ctx, procedure, func(ctx context.Context) (err error) {
			res, err = call(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		return res, nil
	}
	return grpc.MethodDesc{MethodName: path.Base(procedure), Handler: serve}
}

// serve makes a call for a client that may have it made, and counts it.
func (s *grpcService) serve(ctx context.Context, procedure string, call func(context.Context) error) error {
	began, from := time.Now(), clientOf(ctx)
	recorder := s.requests.RecorderOf(from)
	arrived := recorder.Now()
	err := s.admitted(ctx, procedure, from, call)
	recorder.Done(arrived, 1)
	if err != nil {
		s.requests.Failed(frontend.KindOf(err).Reason)
		err = s.status(ctx, err)
	}
	s.log(ctx, procedure, from, began)
	return err
}

// admitted makes a call for a client that may have it made. A fault in it ends no other.
func (s *grpcService) admitted(ctx context.Context, procedure, from string, call func(context.Context) error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			s.Logger.Error("a call was ended by a fault of this program", "call", procedure, "panic", reason, "stack", string(debug.Stack()))
			err = errors.New("a fault of the server")
		}
	}()
	grpcCtx := ctx
	if b, ok := ctx.Value(boundedKey{}).(*bounded); ok {
		ctx = b.call
	}
	if ctx, err = s.admit(ctx, procedure, from); err != nil {
		return err
	}
	if s.route != nil {
		_ = grpc.SetHeader(grpcCtx, metadata.Pairs(hops.Route, hops.Format(s.route()))) // cannot fail for a live call
	}
	if s.prepare != nil {
		ctx = s.prepare(ctx)
	}
	if procedure != leafv1connect.LeafServiceNextProcedure { // that looks for the stop where it has to wait
		var cancel context.CancelFunc
		ctx, cancel = untilStop(ctx, s.Stop)
		defer cancel()
	}
	return call(ctx)
}

// admit returns the context of a call that the client may make.
func (s *grpcService) admit(ctx context.Context, procedure, from string) (context.Context, error) {
	if s.opts.Access.Open() && needs(procedure)&access.Take != 0 { // everyone may
		return ctx, nil
	}
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: procedure}, Header: headerOf(ctx), RemoteAddr: from}
	if authority := metadata.ValueFromIncomingContext(ctx, ":authority"); len(authority) > 0 {
		r.Host = authority[0]
	}
	return admit(s.opts, r.WithContext(ctx))
}

// status is err as gRPC tells it.
func (s *grpcService) status(ctx context.Context, err error) error {
	advice := make(http.Header)
	frontend.SetAdvice(advice, err)
	for name, values := range advice {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(name, values[0])) // as above
	}
	return statusOf(newError(err, s.tell(err)))
}

// statusOf is an error of Connect as one of grpc-go.
func statusOf(err *connect.Error) error {
	p := &spb.Status{Code: int32(err.Code()), Message: err.Message()}
	for _, d := range err.Details() {
		p.Details = append(p.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
	}
	return status.ErrorProto(p)
}

func (s *grpcService) log(ctx context.Context, procedure, from string, began time.Time) {
	s.Log(procedure, from, func() http.Header { return headerOf(ctx) }, began)
}

// headerOf returns the header of a call.
func headerOf(ctx context.Context) http.Header {
	header := make(http.Header)
	fields, _ := metadata.FromIncomingContext(ctx)
	for name, values := range fields {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return header
}

func clientOf(ctx context.Context) string {
	if client, ok := peer.FromContext(ctx); ok {
		return client.Addr.String()
	}
	return ""
}

// untilStop returns a context that ends with stop too.
func untilStop(ctx, stop context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(stop, func() { cancel(context.Cause(stop)) })
	return ctx, func() {
		release()
		cancel(nil)
	}
}
