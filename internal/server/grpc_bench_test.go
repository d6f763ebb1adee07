package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server"
)

// benchServerEnv tells a process of this test to be a server of [BenchmarkGRPC]: leaf, or bare.
const benchServerEnv = "LEAF_TEST_GRPC_SERVER"

// TestGRPCBenchServer is the server of [BenchmarkGRPC] in a process of its own, which separates its
// CPU time from the clients'. It answers each line with that time.
func TestGRPCBenchServer(t *testing.T) {
	var addr string
	switch os.Getenv(benchServerEnv) {
	case "leaf":
		addr = run(t, nil, func(o *server.Options) {
			withGRPC(o)
			o.Logger = nil
		}).rpc
	case "bare":
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr = listener.Addr().String()
		s := grpc.NewServer()
		s.RegisterService(&bareService, nil)
		defer s.Stop()
		go s.Serve(listener)
	default:
		return
	}
	fmt.Println(addr)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			t.Fatal(err)
		}
		fmt.Println(used.Utime.Nano() + used.Stime.Nano())
	}
}

// bareService answers a call with a grpc-go server's own work and nothing else.
var bareService = grpc.ServiceDesc{
	ServiceName: leafv1connect.LeafServiceName,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Next",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var req leafv1.NextRequest
			if err := decode(&req); err != nil {
				return nil, err
			}
			return &leafv1.NextResponse{Id: int64(len(req.GetKey()))}, nil
		},
	}},
}

// A benchServer is a process that serves.
type benchServer struct {
	addr   string
	stdin  io.Writer
	stdout *bufio.Reader
}

func startBenchServer(b *testing.B, kind string) *benchServer {
	cmd := exec.Command(os.Args[0], "-test.run=^TestGRPCBenchServer$")
	cmd.Env = append(os.Environ(), benchServerEnv+"="+kind)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // its figures are taken
	})
	s := &benchServer{stdin: stdin, stdout: bufio.NewReader(stdout)}
	s.addr = s.line(b)
	return s
}

func (s *benchServer) line(b *testing.B) string {
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// cpu returns the CPU time that the process has used.
func (s *benchServer) cpu(b *testing.B) (used time.Duration) {
	fmt.Fprintln(s.stdin)
	if _, err := fmt.Sscan(s.line(b), &used); err != nil {
		b.Fatal(err)
	}
	return used
}

// A benchLoad is what clients do to a server on some connections.
type benchLoad struct {
	name  string
	conns int
	each  int // calls in flight on each
	call  func(ctx context.Context, conn *grpc.ClientConn, left *atomic.Int64) error
}

const benchInFlight = 64

// unary makes the remaining calls.
func unary(ctx context.Context, conn *grpc.ClientConn, left *atomic.Int64) error {
	req, res := &leafv1.NextRequest{Key: "order"}, new(leafv1.NextResponse)
	for left.Add(-1) >= 0 {
		if err := conn.Invoke(ctx, leafv1connect.LeafServiceNextProcedure, req, res); err != nil {
			return err
		}
	}
	return nil
}

// streamed takes IDs over a stream with 64 messages in flight, n IDs each.
func streamed(n int) func(context.Context, *grpc.ClientConn, *atomic.Int64) error {
	return func(ctx context.Context, conn *grpc.ClientConn, left *atomic.Int64) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		desc := grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
		stream, err := conn.NewStream(ctx, &desc, leafv1connect.LeafServiceStreamProcedure)
		if err != nil {
			return err
		}
		req := &leafv1.StreamRequest{Asks: slices.Repeat([]*leafv1.TakeRequest{{Key: "order", Count: 1}}, n)}
		var asked, answered int
		for total := int(left.Load()); answered < total; {
			for asked-answered+n <= benchInFlight {
				if err := stream.SendMsg(req); err != nil {
					return err
				}
				asked += n
			}
			res := new(leafv1.StreamResponse)
			if err := stream.RecvMsg(res); err != nil {
				return err
			}
			answered += len(res.GetAnswers())
		}
		return nil
	}
}

// do returns the CPU time of the server for each of n IDs.
func (l benchLoad) do(b *testing.B, s *benchServer, n int64) time.Duration {
	var callers sync.WaitGroup
	var left atomic.Int64
	conns := make([]*grpc.ClientConn, l.conns)
	for i := range conns {
		conn, err := grpc.NewClient("passthrough:///"+s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		left.Store(1)
		if err := unary(b.Context(), conn, &left); err != nil { // it is connected
			b.Fatal(err)
		}
		conns[i] = conn
	}
	left.Store(n)
	before := s.cpu(b)
	for _, conn := range conns {
		for range l.each {
			callers.Go(func() {
				if err := l.call(b.Context(), conn, &left); err != nil {
					b.Error(err)
				}
			})
		}
	}
	callers.Wait()
	return (s.cpu(b) - before) / time.Duration(n)
}

// BenchmarkGRPC compares the server's CPU time for an ID with that of a bare grpc-go server for an
// empty call, in rounds that alternate.
func BenchmarkGRPC(b *testing.B) {
	const rounds, n = 7, 20_000
	bare, leaf := startBenchServer(b, "bare"), startBenchServer(b, "leaf")
	wide := benchLoad{"unary, 64 connections", benchInFlight, 1, unary}
	deep := benchLoad{"unary, 1 connection, 64 in flight", 1, benchInFlight, unary}
	rows := []struct {
		server *benchServer
		load   benchLoad
		ids    int64
		base   int // the row it is compared with
	}{
		{bare, wide, n, 0},
		{leaf, wide, n, 0},
		{bare, deep, n, 2},
		{leaf, deep, n, 2},
		{leaf, benchLoad{"stream, 64 in flight, one a message", 1, 1, streamed(1)}, 4 * n, 3},
		{leaf, benchLoad{"stream, 64 in flight, all in a message", 1, 1, streamed(benchInFlight)}, 16 * n, 3},
	}
	spent := make([][]time.Duration, len(rows))
	for range b.N * rounds {
		for i, row := range rows {
			spent[i] = append(spent[i], row.load.do(b, row.server, row.ids))
		}
	}
	var table strings.Builder
	for i, row := range rows {
		slices.Sort(spent[i])
		ratios := float64(spent[i][len(spent[i])/2]) / float64(spent[row.base][len(spent[i])/2])
		fmt.Fprintf(&table, "\n%-10s %-40s %6.2f µs (%.2f–%.2f)  %.3f of %q", map[bool]string{true: "grpc-go", false: "Leaf"}[row.server == bare],
			row.load.name, spent[i][len(spent[i])/2].Seconds()*1e6, spent[i][0].Seconds()*1e6, spent[i][len(spent[i])-1].Seconds()*1e6, ratios, rows[row.base].load.name)
	}
	b.Log(table.String())
}
