package rpcapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
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
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// A GRPC serves gRPC alone, with the services that [Register] adds to a mux, at a third of
// net/http's CPU time.
type GRPC struct {
	opts        *frontend.Options
	requests    *telemetry.Requests
	bodyTimeout time.Duration
	calls       *grpc.Server
	conns       atomic.Pointer[conns.Listener] // nil: it does not serve yet
}

// NewGRPC returns a server that serves nothing yet.
func NewGRPC(opts *frontend.Options) *GRPC { return newGRPC(opts, frontend.BodyTimeout) }

func newGRPC(opts *frontend.Options, bodyTimeout time.Duration) *GRPC {
	g := &GRPC{opts: opts, requests: opts.Requests.Of(frontEnd), bodyTimeout: bodyTimeout}
	const workersPerCPU = 16 // whose stacks have grown already
	const window = 1<<16 - 1 // the smallest; a fixed size saves the pings that would search a better one
	pool := &chargingPool{small: mem.DefaultBufferPool(), unsent: opts.Conns.Budget}
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), pool}),
		experimental.BufferPool(pool),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(frontend.MaxStreams),
		grpc.MaxHeaderListSize(frontend.MaxHeaderBytes),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.NumStreamWorkers(uint32(workersPerCPU * runtime.GOMAXPROCS(0))),
		grpc.ConnectionTimeout(frontend.RequestTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: frontend.IdleTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(g.boundBody),
	}
	if opts.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(opts.TLS)))
	}
	g.calls = grpc.NewServer(options...)
	g.register(g.calls)
	return g
}

// A grpcService serves the calls of one service.
type grpcService struct {
	*GRPC
	requests *telemetry.Requests // nil: its calls are not counted
	tell     errorText
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
func (g *GRPC) boundBody(ctx context.Context, info *tap.Info) (context.Context, error) {
	if info.FullMethodName == leafv1connect.LeafServiceStreamProcedure {
		return ctx, nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < g.bodyTimeout {
		return ctx, nil
	}
	inner, cancel := context.WithTimeout(ctx, g.bodyTimeout)
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
		err := s.serve(ctx, procedure, req, func(ctx context.Context) (err error) {
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
func (s *grpcService) serve(ctx context.Context, procedure string, req any, call func(context.Context) error) error {
	began, from := time.Now(), clientOf(ctx)
	recorder := s.requests.RecorderOf(from)
	arrived := recorder.Now()
	err := s.admitted(ctx, procedure, from, req, call)
	recorder.Done(arrived, 1)
	if err != nil {
		s.requests.Failed(frontend.KindOf(err).Reason)
		err = s.status(ctx, err)
	}
	s.log(ctx, procedure, from, began)
	return err
}

// admitted makes a call for a client that may have it made. A fault in it ends no other.
func (s *grpcService) admitted(ctx context.Context, procedure, from string, req any, call func(context.Context) error) (err error) {
	grpcCtx := ctx
	if b, ok := ctx.Value(boundedKey{}).(*bounded); ok {
		ctx = b.call
	}
	ctx, end := s.traced(ctx, procedure, req)
	defer func() { end(err) }()
	defer func() {
		if reason := recover(); reason != nil {
			s.opts.Logger.Error("a call was ended by a fault of this program", "call", procedure, "panic", reason, "stack", string(debug.Stack()))
			err = errors.New("a fault of the server")
		}
	}()
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
		ctx, cancel = untilStop(ctx, s.opts.Context)
		defer cancel()
	}
	return call(ctx)
}

// admit returns the context of a call that the client may make.
func (s *grpcService) admit(ctx context.Context, procedure, from string) (context.Context, error) {
	oneAnswer := procedure == leafv1connect.LeafServiceNextProcedure || procedure == leafv1connect.LeafServiceTakeProcedure
	if oneAnswer && s.opts.Access.Open() { // saves what the request costs
		return frontend.WithCaller(ctx, s.opts.Access.Anyone()), nil
	}
	r := requestOf(ctx, procedure, from)
	return admit(s.opts, r.WithContext(ctx))
}

// requestOf returns a call as net/http would have read it.
func requestOf(ctx context.Context, procedure, from string) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: procedure}, Proto: "HTTP/2.0", Header: headerOf(ctx), RemoteAddr: from}
	if authority := metadata.ValueFromIncomingContext(ctx, ":authority"); len(authority) > 0 {
		r.Host = authority[0]
	}
	if client, ok := peer.FromContext(ctx); ok {
		if tls, ok := client.AuthInfo.(credentials.TLSInfo); ok {
			r.TLS = &tls.State
		}
	}
	return r
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
	if s.opts.AccessLog.Due() {
		r := requestOf(ctx, procedure, from)
		s.opts.AccessLog.Log(r, s.opts.CallerName(r), http.StatusOK, began)
	}
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
