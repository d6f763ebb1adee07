// Package testleaf runs Leaf servers inside a test, for the tests of their clients.
package testleaf

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Options are the parts of a [Server]. It lacks those with a zero field.
type Options struct {
	Store    segment.Store
	Registry worker.Registry
	Segment  segment.SetOptions
	Gate     *access.Gate
	Route    func() []string
}

// A Server is the RPC front end of a Leaf server over a store, on a port of 127.0.0.1.
type Server struct {
	Set *segment.Set // over the store

	opts  frontend.Options
	addr  string
	mu    sync.Mutex
	held  chan struct{} // closed when requests go on; nil: they are not held
	calls map[string]int
	http  *http.Server
	done  chan struct{}
}

// Start runs a server until t ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := newServer(o)
	s.Resume(t)
	t.Cleanup(s.close)
	return s
}

// Run runs a server until stop is called, for examples.
func Run(o Options) (url string, stop func()) {
	s := newServer(o)
	if err := s.serve(); err != nil {
		panic(err)
	}
	return s.URL(), s.close
}

func newServer(o Options) *Server {
	s := &Server{calls: make(map[string]int), addr: "127.0.0.1:0"}
	sources := make(map[string]issuer.Source)
	if o.Store != nil {
		s.Set = segment.NewSet(o.Store, &o.Segment)
		sources[issuer.Segment] = issuer.Numbers(s.Set)
		s.opts.Tags = issuer.NewTags(o.Store, s.Set.Server(), nil)
		s.opts.Tags.UseMaskKeys(o.Segment.MaskKeys)
	}
	if o.Registry != nil {
		s.opts.Workers = issuer.NewWorkers(o.Registry, nil, nil)
	}
	s.opts.IDs, s.opts.Access, s.opts.Route = issuer.New(sources, nil), o.Gate, o.Route
	if s.opts.Access == nil {
		s.opts.Access = access.New(access.Options{Local: true, PublicRead: true})
	}
	s.opts.OutageBudget = segment.DefaultOutageBudget
	return s
}

// close ends the server and its set.
func (s *Server) close() {
	s.Release()
	s.Stop()
	if s.Set != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Set.Close(ctx) // a store that fails on purpose takes nothing back
	}
}

// URL returns the address, as http://host:port.
func (s *Server) URL() string { return "http://" + s.addr }

// Host returns the address, as host:port.
func (s *Server) Host() string { return s.addr }

// Resume serves, on the same port as before.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	if err := s.serve(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) serve() error {
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.addr = listener.Addr().String()
	mux := http.NewServeMux()
	rpcapi.Register(mux, &s.opts)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{Handler: s.counted(mux), Protocols: protocols}
	s.done = make(chan struct{})
	go func(srv *http.Server, done chan struct{}) {
		defer close(done)
		_ = srv.Serve(listener) // ends with Stop
	}(s.http, s.done)
	return nil
}

// Stop ends the server like a crash. Its memory survives.
func (s *Server) Stop() {
	_ = s.http.Close() // vanished connections need no close
	<-s.done
}

// counted counts the requests and holds them while they are held.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]++
		held := s.held
		s.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Hold has requests from now on wait for [Server.Release].
func (s *Server) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
}

// Release lets requests go on.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		close(s.held)
		s.held = nil
	}
}

// Calls returns the number of requests of a procedure, such as Advance.
func (s *Server) Calls(procedure string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[procedure]
}
