package server

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/fastlane"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
)

// A lane receives the connections on the port of HTTP before net/http. It answers requests for one
// ID from event loops, and hands over all other connections, those of gRPC to grpc-go.
type lane struct {
	conns        *conns.Server
	web          *webHandover    // to net/http
	grpc         *handover       // to grpc-go
	calls        *grpc.Server    // nil: net/http serves gRPC too
	writeTimeout time.Duration   // of grpc-go's connections
	greets       context.Context // ends when the lane does
	goodbye      context.CancelFunc
}

// newLane returns the lane, or nil: with TLS, and on other systems than Linux, net/http serves
// alone.
func (s *Server) newLane(ctx context.Context, opts *frontend.Options) *lane {
	if s.tls != nil || !conns.HasLoops {
		return nil
	}
	l := &lane{web: newWebHandover(s.web.addr), grpc: newHandover(s.web.addr), writeTimeout: cmp.Or(s.opts.answerTimeout, answerTimeout+s.longestWait())}
	s.http.ConnState = l.web.observe(s.http.ConnState)
	l.greets, l.goodbye = context.WithCancel(ctx)
	if s.traces == nil {
		l.calls = s.newGRPC(ctx, opts)
	}
	l.conns = conns.New(ctx, fastlane.New(opts, s.passesLane).Serve, &conns.Options{
		MaxConns:       s.cfg.Limits.Connections,
		MaxPerClient:   s.cfg.Limits.ConnectionsPerClient,
		IdleTimeout:    idleTimeout,
		RequestTimeout: readHeaderTimeout,
		WriteTimeout:   cmp.Or(s.opts.answerTimeout, conns.DefaultWriteTimeout),
		Budget:         opts.Unsent,
		HandOver:       l.give,
		Logger:         s.log,
	})
	return l
}

// newGRPC returns what serves connections that carry gRPC alone.
func (s *Server) newGRPC(ctx context.Context, opts *frontend.Options) *grpc.Server {
	return rpcapi.NewGRPC(opts, &rpcapi.GRPCOptions{
		Stop:           ctx,
		MaxStreams:     maxStreams,
		MaxHeaderBytes: maxHeaderBytes,
		IdleTimeout:    idleTimeout,
		BodyTimeout:    bodyTimeout,
		Logger:         s.log,
		Log:            s.observer.logCall,
	})
}

// passesLane reports whether net/http answers all, or all below /v1, for now: it alone logs and
// traces requests, and answers pages of other origins.
func (s *Server) passesLane(v1 bool) bool {
	return s.traces != nil || s.observer.every.Load() > 0 || v1 && s.browser.Shares()
}

// give passes a connection on to the server for its protocol.
func (l *lane) give(conn net.Conn) {
	if l.calls == nil {
		l.web.give(conn)
		return
	}
	g := &greeting{Conn: conn}
	if !g.speaksGRPC(l.greets, idleTimeout) || !l.grpc.give(&bounded{Conn: g, limit: l.writeTimeout}) {
		l.web.give(g)
	}
}

// serve serves the port, with web behind the lane.
func (l *lane) serve(port net.Listener, web *http.Server) error {
	go func() { _ = web.Serve(l.web) }() // ends when web is shut down
	if l.calls != nil {
		go func() { _ = l.calls.Serve(l.grpc) }() // likewise
	}
	return l.conns.Serve(port)
}

// shutdown ends the lane, and then web. Until then web takes connections, because only web tells
// requests with a long wait that the server stops. Clients of web and of gRPC learn at once that
// they should reconnect elsewhere. Web would not answer a request that it reads after its own stop
// began.
func (l *lane) shutdown(ctx context.Context, web *http.Server) error {
	web.SetKeepAlivesEnabled(false)
	l.goodbye()
	var ends errgroup.Group
	ends.Go(func() error {
		if err := l.conns.Shutdown(ctx); err != nil {
			return err
		}
		if err := l.web.wait(ctx); err != nil {
			return err
		}
		return web.Shutdown(ctx)
	})
	if l.calls != nil {
		ends.Go(func() error { return stopGRPC(ctx, l.calls) })
	}
	return ends.Wait()
}

// stopGRPC lets calls finish until ctx ends.
func stopGRPC(ctx context.Context, calls *grpc.Server) error {
	done := make(chan struct{})
	go func() {
		calls.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut ends what shutdown has not ended, except web.
func (l *lane) cut() {
	l.conns.Close()
	if l.calls != nil {
		l.calls.Stop()
	}
}
