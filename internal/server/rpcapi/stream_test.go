package rpcapi_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

func ask(key string, count int32) *leafv1.TakeRequest {
	return &leafv1.TakeRequest{Key: key, Count: count}
}

// collect receives n answers, in however many messages.
func collect(t *testing.T, stream *connect.BidiStreamForClientSimple[leafv1.StreamRequest, leafv1.StreamResponse], n int) (all []*leafv1.StreamAnswer) {
	t.Helper()
	for len(all) < n {
		res, err := stream.Receive()
		if err != nil {
			t.Fatalf("after %d answers: %v", len(all), err)
		}
		all = append(all, res.GetAnswers()...)
	}
	return all
}

func TestStream(t *testing.T) {
	for name, opts := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		f := serve(t, loopback, opts...)
		stream, err := f.ids.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asks := []*leafv1.TakeRequest{ask("order", 1), ask("nope", 1), ask("order", 5), ask("order", 0), {Scheme: "uuid", Count: 2}, ask("order", 1)}
		if err := stream.Send(&leafv1.StreamRequest{Asks: asks}); err != nil {
			t.Fatal(err)
		}
		got := collect(t, stream, len(asks))
		for i, want := range []int64{100, -1, 101, -1, -2, 106} {
			a := got[i]
			switch {
			case want == -1 && (a.GetError().GetReason() == "" || len(a.GetRanges()) > 0):
				t.Errorf("%s, answer %d: %v, want an error", name, i, a)
			case want == -2 && len(a.GetTexts()) != 2:
				t.Errorf("%s, answer %d: %v, want texts", name, i, a)
			case want >= 0 && (a.GetError() != nil || a.GetRanges()[0].GetStart() != want):
				t.Errorf("%s, answer %d: %v, want %d", name, i, a, want)
			}
		}
		if e := got[1].GetError(); connect.Code(e.GetCode()) != connect.CodeNotFound || e.GetReason() != "UNKNOWN_TAG" {
			t.Errorf("unknown tag: %v", e)
		}
		if err := stream.CloseRequest(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

// Messages that arrive one by one are answered in their order.
func TestStreamOfManyMessages(t *testing.T) {
	f := serve(t, loopback)
	stream, err := f.ids.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const n = 500
	go func() {
		for range n {
			if err := stream.Send(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{ask("order", 1)}}); err != nil {
				t.Error(err)
			}
		}
		_ = stream.CloseRequest()
	}()
	for i, a := range collect(t, stream, n) {
		if got := a.GetRanges()[0].GetStart(); got != int64(100+i) {
			t.Fatalf("answer %d: %d", i, got)
		}
	}
}

func TestStreamRefusesTooMany(t *testing.T) {
	f := serve(t, loopback)
	stream, err := f.ids.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asks := make([]*leafv1.TakeRequest, 1001)
	for i := range asks {
		asks[i] = ask("order", 1)
	}
	_ = stream.Send(&leafv1.StreamRequest{Asks: asks})
	_, err = stream.Receive()
	wantCode(t, "1001 asks", err, connect.CodeInvalidArgument)
}

// A server that stops ends its streams at once: it waits for them.
func TestStreamEndsWithTheServer(t *testing.T) {
	stopping := make(chan struct{})
	ids := issuer.New(nil, nil)
	f := serveBackend(t, loopback, frontend.Options{IDs: ids, Stopping: stopping})
	stream, err := f.ids.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{{Scheme: "uuid", Count: 1}}}); err != nil {
		t.Fatal(err)
	}
	collect(t, stream, 1)
	close(stopping)
	_, err = stream.Receive()
	wantCode(t, "stream of a server that stops", err, connect.CodeUnavailable)
}

// The deadlines that the server sets for a request are not those of a stream.
func TestStreamOutlivesARequest(t *testing.T) {
	server := newServer(loopback, frontend.Options{IDs: issuer.New(nil, nil)})
	server.Config.WriteTimeout, server.Config.ReadTimeout = 100*time.Millisecond, 100*time.Millisecond
	f := start(t, server)
	stream, err := f.ids.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.CloseRequest() // the client ends no stream by itself
	for begun := time.Now(); time.Since(begun) < 300*time.Millisecond; {
		if err := stream.Send(&leafv1.StreamRequest{Asks: []*leafv1.TakeRequest{{Scheme: "uuid", Count: 1}}}); err != nil {
			t.Fatal(err)
		}
		collect(t, stream, 1)
	}
}

// A message of 1,000 asks for 10,000 texts each is answered in messages of bounded size: a client
// that does not read them holds one of them in the server's memory, not all.
func TestStreamSplitsLargeAnswers(t *testing.T) {
	f := serve(t, loopback, connect.WithGRPC())
	stream, err := f.ids.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var asks []*leafv1.TakeRequest
	for range 60 {
		asks = append(asks, &leafv1.TakeRequest{Scheme: issuer.UUID, Count: 1000})
	}
	if err := stream.Send(&leafv1.StreamRequest{Asks: asks}); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for answered := 0; answered < len(asks); {
		res, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		texts := 0
		for _, a := range res.GetAnswers() {
			if a.GetError() != nil {
				t.Fatal(a.GetError())
			}
			texts += len(a.GetTexts())
			for _, text := range a.GetTexts() {
				seen[text] = true
			}
		}
		answered += len(res.GetAnswers())
		if texts > 6000 {
			t.Errorf("%d texts in a message", texts)
		}
	}
	if len(seen) != 60_000 {
		t.Errorf("%d distinct texts, want 60000", len(seen))
	}
	_ = stream.CloseRequest()
}
