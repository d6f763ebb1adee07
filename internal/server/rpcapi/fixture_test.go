package rpcapi_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/segment"
)

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	everyone = &net.TCPAddr{IP: net.IPv4zero, Port: 8080}
	started  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

type fixture struct {
	url     string
	http    *http.Client
	store   *kv.Store
	ids     leafv1connect.LeafServiceClient
	admin   leafv1connect.AdminServiceClient
	workers leafv1connect.WorkerServiceClient
}

// serve starts both services over a store with the tag "order" (step 10, from 100),
// as a server that listens on the given address.
func serve(t *testing.T, listen net.Addr, opts ...connect.ClientOption) fixture {
	return serveStore(t, listen, nil, opts...)
}

// serveGated is serve with rules of its own, on a loopback address.
func serveGated(t *testing.T, gate *access.Gate) fixture { return serveStore(t, loopback, gate) }

func serveStore(t testing.TB, listen net.Addr, gate *access.Gate, opts ...connect.ClientOption) fixture {
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 100, Step: 10, Options: segment.Describe("d")}); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, nil)
	<-set.Ready()
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, &issuer.Options{MaxBatch: 1000, MaxRange: 1000})
	t.Cleanup(func() {
		if err := set.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f := serveBackend(t, listen, frontend.Options{IDs: ids, Tags: issuer.NewTags(store, set.Server(), nil), Access: gate}, opts...)
	f.store = store
	return f
}

// serveBackend starts both services over b.
func serveBackend(t testing.TB, listen net.Addr, b frontend.Options, opts ...connect.ClientOption) fixture {
	return start(t, newServer(listen, b), opts...)
}

// newServer returns a server over b that does not run yet.
func newServer(listen net.Addr, b frontend.Options) *httptest.Server {
	mux := http.NewServeMux()
	rpcapi.Register(mux, complete(listen, b))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	return server
}

// complete adds the common parts of all test servers to b.
func complete(listen net.Addr, b frontend.Options) *frontend.Options {
	b.Version, b.Started, b.StoreName, b.Registry = "v1.2.3", started, "memory:", "memory:workers"
	b.Listen, b.Address = listen, listen.String()
	if b.Access == nil {
		b.Access = access.New(access.Options{Local: frontend.IsLoopback(listen), PublicRead: true})
	}
	return &b
}

// start runs a server until t ends.
func start(t testing.TB, server *httptest.Server, opts ...connect.ClientOption) fixture {
	server.Start()
	client := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	client.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
	})
	return fixture{
		url: server.URL, http: client,
		ids:     leafv1connect.NewLeafServiceClient(client, server.URL, opts...),
		admin:   leafv1connect.NewAdminServiceClient(client, server.URL, opts...),
		workers: leafv1connect.NewWorkerServiceClient(client, server.URL, opts...),
	}
}

func wantCode(t *testing.T, what string, err error, want connect.Code) {
	t.Helper()
	if err == nil || connect.CodeOf(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// post sends JSON and returns the answer, without its body.
func (f fixture) post(t *testing.T, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res
}

// serveBench is serve for benchmarks.
func serveBench(b *testing.B) fixture { return serveStore(b, loopback, nil) }
