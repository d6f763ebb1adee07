package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
)

// serveEcho is a server of package grpc with the methods Next and Stream, which count. It prints its
// address.
func serveEcho() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var n atomic.Int64
	next := func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := read(new(leafv1.NextRequest)); err != nil {
			return nil, err
		}
		return &leafv1.NextResponse{Id: n.Add(1)}, nil
	}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: leafv1connect.LeafServiceName, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Next", Handler: next}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return echoStream(stream, &n) }}},
	}, new(struct{}))
	fmt.Println(listener.Addr())
	return s.Serve(listener)
}

// echoStream answers each message with as many numbers as it asks for.
func echoStream(stream grpc.ServerStream, n *atomic.Int64) error {
	for {
		var req leafv1.StreamRequest
		if err := stream.RecvMsg(&req); err != nil {
			return err
		}
		res := &leafv1.StreamResponse{Answers: make([]*leafv1.StreamAnswer, len(req.GetAsks()))}
		for i := range res.Answers {
			id := n.Add(1)
			res.Answers[i] = &leafv1.StreamAnswer{Ranges: []*leafv1.Range{{Start: id, End: id + 1}}}
		}
		if err := stream.SendMsg(res); err != nil {
			return err
		}
	}
}

// grpcWire measures calls and streams on the port of gRPC next to calls of a bare server of package grpc.
func grpcWire(ctx context.Context, l *lab) (r report, err error) {
	echo, pid, stop, err := startPeer(ctx, "-echo")
	if err != nil {
		return r, err
	}
	defer stop()
	err = l.serveLeaf(ctx, func(leaf *bench.Leaf) error {
		r, err = l.grpcBeside(ctx, echo, pid, leaf)
		return err
	})
	return r, err
}

func (l *lab) grpcBeside(ctx context.Context, echo string, echoPID int, leaf *bench.Leaf) (report, error) {
	all := newDistinct()
	unary := func(addr string) *load.GRPC {
		return load.NewGRPC(load.Server{Addr: addr, Timeout: 10 * time.Second}, "segment", 1)
	}
	toEcho, toLeaf := unary(echo), unary(leaf.GRPC)
	defer toEcho.Close()
	defer toLeaf.Close()
	streams, err := newStreams(leaf.GRPC)
	if err != nil {
		return report{}, err
	}
	defer streams.conn.Close()
	peer := &wireServer{name: "grpc-go, bare, one connection", pid: echoPID, target: toEcho, clients: clients, pipeline: 1}
	ours := &wireServer{name: "Leaf, `Next`, one connection", pid: leaf.PID(), target: all.of(toLeaf), clients: clients, pipeline: 1, ours: true}
	singles := &wireServer{name: "Leaf, 50 streams, one in flight on each", pid: leaf.PID(), target: all.of(streams), clients: clients, pipeline: 1, ours: true}
	stream := &wireServer{name: "Leaf, 2 streams, 64 in flight on each", pid: leaf.PID(), target: all.of(streams), clients: 2, pipeline: 64, ours: true}
	w := &wireRun{l, []*wireServer{peer, ours, singles, stream}}
	if err := w.saturate(ctx); err != nil {
		return report{}, err
	}
	if err := w.openLoops(ctx, peer, ours); err != nil {
		return report{}, err
	}
	summary, err := all.result()
	return report{
		table:   w.table() + summary,
		picture: w.picture("dark: CPU of an ID in µs; light: p99 in ms, at 80 % load where measured; logarithmic"),
		found: map[string]result{
			"grpc":   {figure: ours.full.cpu.over(peer.full.cpu)},
			"stream": {figure: stream.full.cpu.over(peer.full.cpu)},
		},
	}, err
}
