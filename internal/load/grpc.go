package load

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
)

// A GRPC is a target that speaks gRPC. [GRPC.Close] closes its connections.
type GRPC struct {
	server Server
	scheme string

	mu     sync.Mutex
	conns  []*grpc.ClientConn // nil: not opened yet
	opened int
}

// NewGRPC returns a target whose clients share so many connections.
func NewGRPC(server Server, scheme string, connections int) *GRPC {
	return &GRPC{server: server, scheme: scheme, conns: make([]*grpc.ClientConn, connections)}
}

// Open implements [Target].
func (t *GRPC) Open() Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.opened % len(t.conns)
	t.opened++
	c := &grpcConn{target: t, header: metadata.MD{}}
	if t.server.Token != "" {
		c.header.Set("authorization", "Bearer "+t.server.Token)
	}
	if t.conns[i] == nil {
		t.conns[i], c.err = t.connect()
	}
	c.conn = t.conns[i]
	return c
}

// connect returns a connection. gRPC makes it at the first use.
func (t *GRPC) connect() (*grpc.ClientConn, error) {
	security := insecure.NewCredentials()
	if t.server.TLS != nil {
		security = credentials.NewTLS(t.server.TLS)
	}
	again := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: t.server.Timeout}
	again.Backoff.BaseDelay, again.Backoff.MaxDelay = retryPause, time.Second
	return grpc.NewClient("passthrough:///"+t.server.Addr, grpc.WithTransportCredentials(security), grpc.WithConnectParams(again),
		grpc.WithNoProxy(), grpc.WithUserAgent("leaf-bench"), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBody)))
}

// Close closes all connections.
func (t *GRPC) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, conn := range t.conns {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

type grpcConn struct {
	target *GRPC
	header metadata.MD
	conn   *grpc.ClientConn
	err    error // set without a conn
	next   leafv1.NextResponse
	take   leafv1.TakeResponse
}

// Close leaves the connection to others.
func (c *grpcConn) Close() error { return nil }

// Do makes the calls one after another.
func (c *grpcConn) Do(ctx context.Context, calls []*Call) {
	ctx = metadata.NewOutgoingContext(ctx, c.header)
	for _, call := range calls {
		call.Err = c.do(ctx, call)
	}
}

func (c *grpcConn) do(ctx context.Context, call *Call) error {
	if c.err != nil {
		return c.err
	}
	ctx, cancel := context.WithTimeout(ctx, c.target.server.Timeout)
	defer cancel()
	if call.Count == 1 {
		return c.one(ctx, call)
	}
	return c.batch(ctx, call)
}

func (c *grpcConn) one(ctx context.Context, call *Call) error {
	req := &leafv1.NextRequest{Scheme: c.target.scheme, Key: call.Key}
	if err := c.conn.Invoke(ctx, leafv1connect.LeafServiceNextProcedure, req, &c.next); err != nil {
		return grpcError(err)
	}
	if text := c.next.GetText(); text != "" {
		return call.IDs.addText([]byte(text))
	}
	return call.IDs.addRange(c.next.GetId(), c.next.GetId()+1)
}

func (c *grpcConn) batch(ctx context.Context, call *Call) error {
	req := &leafv1.TakeRequest{Scheme: c.target.scheme, Key: call.Key, Count: int32(call.Count)}
	if err := c.conn.Invoke(ctx, leafv1connect.LeafServiceTakeProcedure, req, &c.take); err != nil {
		return grpcError(err)
	}
	for _, r := range c.take.GetRanges() {
		if err := call.IDs.addRange(r.GetStart(), r.GetEnd()); err != nil {
			return err
		}
	}
	for _, text := range c.take.GetTexts() {
		if err := call.IDs.addText([]byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// grpcError returns an error by its code. A connection's error is UNAVAILABLE, like that of a
// server without IDs.
func grpcError(err error) error {
	s := status.Convert(err)
	if s.Code() == codes.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return failure("gRPC "+s.Code().String(), clip(s.Message()))
}
