// Package web is the front end for HTTP: the plain APIs, and Connect's handlers for gRPC, on one
// port. A fast lane in front of net/http answers requests for one ID.
package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server/browser"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/console"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
)

// A Server serves HTTP.
type Server struct {
	opts    *frontend.Options
	browser *browser.Handler
	console *console.Console
	http    *http.Server                   // of HTTP/1 behind the lane; without one, of all
	lane    *fastListener                  // nil: net/http has the port alone
	conns   atomic.Pointer[conns.Listener] // of net/http alone; nil: it does not serve yet
}

// New returns a server that serves nothing yet.
func New(opts *frontend.Options) *Server {
	s := &Server{opts: opts}
	mux := http.NewServeMux()
	rpcapi.Register(mux, opts)
	s.console = console.New(opts)
	s.console.Register(mux)
	s.browser = browser.New(opts.CORSOrigins, boundBody(httpapi.New(mux, opts), frontend.BodyTimeout))
	s.browser.CheckHost = opts.CheckPage
	all := &observer{next: s.browser, access: opts.AccessLog, name: opts.CallerName}
	if opts.Traces != nil {
		all.next = &tracer{opts.Traces, s.browser}
	}
	h := yield(all)
	if conns.HasLoops { // elsewhere net/http serves alone
		s.lane = s.newLane(newHTTP(opts, h, false, true))
	}
	s.http = newHTTP(opts, h, true, s.lane == nil)
	if s.lane != nil {
		s.http.ConnState = s.lane.one.connState
	} else {
		s.http.TLSConfig = opts.TLS
	}
	return s
}

// newHTTP returns an http.Server for one of the versions of HTTP, or both.
func newHTTP(opts *frontend.Options, h http.Handler, one, two bool) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(one)
	protocols.SetHTTP2(two && opts.TLS != nil)
	protocols.SetUnencryptedHTTP2(two && opts.TLS == nil)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: frontend.RequestTimeout,
		WriteTimeout:      opts.AnswerTimeout,
		IdleTimeout:       frontend.IdleTimeout,
		MaxHeaderBytes:    frontend.MaxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return opts.Context },
		ErrorLog:          slog.NewLogLogger(newSparse(opts.Logger.Handler()), slog.LevelWarn),
	}
}

// Reload takes up the origins of c.
func (s *Server) Reload(c config.Config) { s.browser.SetOrigins(c.CORSOrigins) }

// Serve serves the connections of l until [Server.Shutdown].
func (s *Server) Serve(l net.Listener) error {
	go s.console.Run(s.opts.Context)
	if s.lane != nil {
		return s.lane.serve(l, s.http)
	}
	limited := conns.Limit(l, s.opts.Conns)
	s.conns.Store(limited)
	if s.opts.TLS != nil {
		return s.http.ServeTLS(limited, "", "")
	}
	return s.http.Serve(limited)
}

// Shutdown accepts no more connections, and lets requests finish until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.lane != nil {
		return s.lane.shutdown(ctx, s.http)
	}
	return s.http.Shutdown(ctx)
}

// Close cuts all connections.
func (s *Server) Close() {
	if s.lane != nil {
		s.lane.cut()
	}
	_ = s.http.Close() // vanished connections need no close
}

// Stats returns the number of open connections, and of refused ones.
func (s *Server) Stats() (open int, refused int64) {
	if s.lane != nil {
		return s.lane.conns.Stats()
	}
	return s.conns.Load().Stats()
}
