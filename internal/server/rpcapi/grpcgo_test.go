package rpcapi_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
)

// The official gRPC client takes IDs, by single calls and by a stream.
func TestGRPCGo(t *testing.T) {
	f := serve(t, loopback)
	conn, err := grpc.NewClient(strings.TrimPrefix(f.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var next leafv1.NextResponse
	if err := conn.Invoke(t.Context(), leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: "order"}, &next); err != nil || next.GetId() != 100 {
		t.Errorf("next: %v, %v", &next, err)
	}
	err = conn.Invoke(t.Context(), leafv1connect.LeafServiceNextProcedure, &leafv1.NextRequest{Key: "nope"}, &next)
	if status.Code(err) != codes.NotFound {
		t.Errorf("unknown tag: %v", err)
	}
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, leafv1connect.LeafServiceStreamProcedure)
	if err != nil {
		t.Fatal(err)
	}
	for want := int64(101); want < 105; want++ {
		if err := stream.SendMsg(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{ask("order", 1)}}); err != nil {
			t.Fatal(err)
		}
		var res leafv1.StreamResponse
		if err := stream.RecvMsg(&res); err != nil || res.GetAnswers()[0].GetRanges()[0].GetStart() != want {
			t.Fatalf("got %v, %v, want %d", &res, err, want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

// BenchmarkStream has 64 IDs in flight on one stream, and BenchmarkUnary 64 calls, by the
// same client.
func BenchmarkStream(b *testing.B) {
	f := serveBench(b)
	stream, err := f.ids.Stream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer stream.CloseRequest()
	const inFlight = 64
	one := &leafv1.TakeRequest{Key: "order", Count: 1}
	asks := make([]*leafv1.TakeRequest, inFlight)
	for i := range asks {
		asks[i] = one
	}
	send := func(n int) {
		if err := stream.Send(&leafv1.StreamRequest{Asks: asks[:n]}); err != nil {
			b.Fatal(err)
		}
	}
	send(inFlight)
	b.ResetTimer()
	for left := b.N; left > 0; {
		res, err := stream.Receive()
		if err != nil {
			b.Fatal(err)
		}
		left -= len(res.GetAnswers())
		send(len(res.GetAnswers()))
	}
}

// BenchmarkStreamOfSingles sends each ask in a message of its own, as simple clients do.
func BenchmarkStreamOfSingles(b *testing.B) {
	f := serveBench(b)
	stream, err := f.ids.Stream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer stream.CloseRequest()
	const inFlight = 64
	one := &leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{{Key: "order", Count: 1}}}
	free := make(chan struct{}, inFlight)
	go func() {
		for range b.N {
			free <- struct{}{}
			if err := stream.Send(one); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	for got := 0; got < b.N; {
		res, err := stream.Receive()
		if err != nil {
			b.Fatal(err)
		}
		for range res.GetAnswers() {
			<-free
			got++
		}
	}
}

func BenchmarkUnary(b *testing.B) {
	f := serveBench(b)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := f.ids.Next(b.Context(), &leafv1.NextRequest{Key: "order"}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
