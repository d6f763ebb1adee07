package server

import (
	"cmp"
	"context"
	"net"
	"net/http"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/fastlane"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A lane stands before net/http on the port of HTTP: it answers requests for one ID from
// event loops, and hands all other connections over.
type lane struct {
	conns  *conns.Server
	handed *handover
}

// newLane returns the lane, nil where there is none: TLS and other systems than Linux are
// net/http's alone.
func (s *Server) newLane(ctx context.Context, opts *frontend.Options) *lane {
	if s.tls != nil || !conns.HasLoops {
		return nil
	}
	handed := newHandover(s.web.addr)
	s.http.ConnState = handed.observe(s.http.ConnState)
	serve := fastlane.New(opts, s.passesLane).Serve
	return &lane{handed: handed, conns: conns.New(ctx, serve, &conns.Options{
		MaxConns:       s.cfg.Limits.Connections,
		MaxPerClient:   s.cfg.Limits.ConnectionsPerClient,
		IdleTimeout:    idleTimeout,
		RequestTimeout: readHeaderTimeout,
		WriteTimeout:   cmp.Or(s.opts.answerTimeout, conns.DefaultWriteTimeout),
		HandOver:       handed.give,
		Logger:         s.log,
	})}
}

// passesLane reports whether net/http answers all, or all below /v1, for now: it alone logs and
// traces requests, and answers pages of other origins.
func (s *Server) passesLane(v1 bool) bool {
	return s.traces != nil || s.observer.every.Load() > 0 || v1 && s.browser.Shares()
}

// serve serves the port, with web behind the lane.
func (l *lane) serve(port net.Listener, web *http.Server) error {
	go func() { _ = web.Serve(l.handed) }() // ends when web is shut down
	return l.conns.Serve(port)
}

// shutdown ends the lane, and then what it hands over to: until then web takes connections, as
// it alone tells what waits for too long that the server stops. Its own clients are told at once
// to go elsewhere. A request that web reads after its own stop began would go unanswered.
func (l *lane) shutdown(ctx context.Context, web *http.Server) error {
	web.SetKeepAlivesEnabled(false)
	if err := l.conns.Shutdown(ctx); err != nil {
		return err
	}
	if err := l.handed.wait(ctx); err != nil {
		return err
	}
	return web.Shutdown(ctx)
}
