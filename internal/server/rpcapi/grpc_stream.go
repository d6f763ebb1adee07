package rpcapi

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A grpcStream is a stream over grpc-go.
type grpcStream struct {
	grpc.ServerStream
	idle *time.Timer
}

// errStreamIdle ends a stream.
var errStreamIdle = status.Error(codes.DeadlineExceeded, "no message has come for too long")

// Receive implements streamConn.
func (s grpcStream) Receive() (*streamRequest, error) {
	var r received
	err := s.RecvMsg(&r)
	return r.streamRequest, err
}

// Send implements streamConn.
func (s grpcStream) Send(res *leafv1.StreamResponse) error { return s.SendMsg(res) }

// Extend implements streamConn.
func (s grpcStream) Extend() { s.idle.Reset(streamIdle) }

// End implements streamConn: the reads end after the handler.
func (s grpcStream) End(func()) { s.idle.Stop() }

// stream serves a stream of ids.
func (s *grpcService) stream(ids *leafService, stream grpc.ServerStream) error {
	const procedure = leafv1connect.LeafServiceStreamProcedure
	began, from := time.Now(), clientOf(stream.Context())
	served := false
	err := s.admitted(stream.Context(), procedure, from, nil, func(ctx context.Context) error {
		served = true
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		return ids.serve(ctx, grpcStream{stream, time.AfterFunc(streamIdle, func() { cancel(errStreamIdle) })})
	})
	if err != nil && !served {
		recorder := s.requests.RecorderOf(from)
		recorder.Done(recorder.Now(), 1)
		s.requests.Failed(frontend.KindOf(err).Reason)
	}
	s.log(stream.Context(), procedure, from, began)
	return s.endOf(stream.Context(), err)
}

// endOf returns a client's error for the end of a stream.
func (s *grpcService) endOf(ctx context.Context, err error) error {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return statusOf(coded)
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return s.status(ctx, err)
}
