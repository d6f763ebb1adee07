package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// errStopping is the error of requests that still wait when the server stops.
var errStopping = fmt.Errorf("the server is stopping: %w", leaf.ErrClosed)

// newHTTP returns an http.Server for one of the versions of HTTP, or both.
func newHTTP(opts *frontend.Options, h http.Handler, one, two bool) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(one)
	protocols.SetHTTP2(two && opts.TLS != nil)
	protocols.SetUnencryptedHTTP2(two && opts.TLS == nil)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		TLSConfig:         opts.TLS,
		ReadHeaderTimeout: frontend.RequestTimeout,
		WriteTimeout:      opts.AnswerTimeout,
		IdleTimeout:       frontend.IdleTimeout,
		MaxHeaderBytes:    frontend.MaxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return opts.Context },
		ErrorLog:          slog.NewLogLogger(newSparse(opts.Logger.Handler()), slog.LevelWarn),
	}
}

// longestWait returns the longest wait of a request for its answer.
func (s *Server) longestWait() time.Duration {
	return max(s.cfg.Segment.Wait+s.cfg.Segment.CallTimeout, s.cfg.Snowflake.Wait, s.cfg.UID.Wait)
}

// serveHTTP serves HTTP until the server is shut down.
func (s *Server) serveHTTP() error {
	if s.lane != nil {
		return s.lane.serve(s.web.listener, s.http)
	}
	limited := conns.Limit(s.web.listener, s.limits())
	s.counts.web.Store(limited)
	if s.tls != nil {
		return s.http.ServeTLS(limited, "", "")
	}
	return s.http.Serve(limited)
}

// serveRESP serves the Redis protocol until the server is shut down.
func (s *Server) serveRESP() error {
	if s.tls != nil {
		return s.conns.Serve(tls.NewListener(s.redis.listener, s.tls.Config()))
	}
	return s.conns.Serve(s.redis.listener)
}

// Run serves until ctx ends and then stops. From then on the server is not ready. After the drain
// delay, and within the shutdown timeout, it accepts no connections, lets requests finish, gives
// the rest of its IDs back to the store and the worker ID to its registry, and closes both. It
// returns nil after an orderly stop.
func (s *Server) Run(ctx context.Context) error {
	release := s.startNode()
	if err := s.open(ctx); err != nil {
		return errors.Join(err, s.stop(release))
	}
	if ctx.Err() != nil { // told to stop before it ever served
		s.opts.Notify.Stopping()
		return s.stop(release)
	}
	s.log.Info("serving", s.about()...)
	s.opts.Notify.Ready(s.statusText(s.health()))
	s.serving.Store(true)
	unwatch := s.watch()
	served := make(chan error, 3)
	go func() { served <- s.serveHTTP() }()
	if s.grpcPort != nil {
		go func() { served <- s.grpc.Serve(s.grpcPort.listener) }()
	}
	if s.redis != nil && s.redis.listener != nil {
		go func() { served <- s.serveRESP() }()
	}
	select {
	case <-ctx.Done():
		s.serving.Store(false)
		s.opts.Notify.Stopping()
		s.stopping.Store(true)
		time.Sleep(s.current.Load().DrainDelay)
		unwatch()
		return s.stop(release)
	case err := <-served:
		unwatch()
		return errors.Join(fmt.Errorf("serve: %w", err), s.stop(release))
	}
}

// open opens the ports when all schemes are ready, or after start_wait; not if ctx ends first.
func (s *Server) open(ctx context.Context) error {
	if s.cfg.StartWait == 0 {
		return nil
	}
	s.log.Info("the port opens when all schemes are ready", "address", s.web.String(), "start_wait", s.cfg.StartWait)
	limit := time.NewTimer(s.cfg.StartWait)
	defer limit.Stop()
	look := time.NewTicker(readyInterval)
	defer look.Stop()
	for wait := true; wait && s.ready() != nil; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		case <-limit.C:
			wait = false
			s.log.Warn("start_wait is over: the port opens although this server is not ready", "err", s.ready())
		}
	}
	for _, p := range s.ports() {
		if err := p.reopen(); err != nil && (p != s.redis || !s.servesWithoutRESP(err)) {
			return err
		}
	}
	return nil
}

// readyInterval is how often open looks whether the server is ready.
const readyInterval = 20 * time.Millisecond

// about returns the attributes of the log's first line.
func (s *Server) about() []any {
	schemes := slices.Sorted(maps.Keys(s.sources()))
	scheme := "http://"
	if s.tls != nil {
		scheme = "https://"
	}
	about := []any{"url", scheme + s.web.String(), "protocols", "HTTP, gRPC", "scheme", strings.Join(schemes, ", ")}
	if s.grpcPort != nil {
		about = append(about, "grpc", s.grpcPort.String())
	}
	if s.redis != nil && s.redis.listener != nil {
		about = append(about, "resp", s.redis.String())
	}
	if s.set != nil {
		about = append(about, "store", s.opts.Store.Name)
	}
	if s.times != nil {
		about = append(about, "workers", s.times.backend.Name)
	}
	return append(about, "version", s.opts.Version)
}

// stop ends serving within the shutdown timeout; release hands the worker ID back. What
// is not done by then is left: it costs IDs, and nothing else.
func (s *Server) stop(release func(context.Context)) error {
	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.end(release) }()
	select {
	case err := <-ended:
		s.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond))
		return err
	case <-time.After(s.cfg.ShutdownTimeout):
		s.log.Warn("stopped before all was given back or closed, which took too long", "shutdown_timeout", s.cfg.ShutdownTimeout)
		return nil
	}
}

// end executes the steps of a stop in order.
func (s *Server) end(release func(context.Context)) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout*9/10)
	defer cancel()
	s.drain()
	var released sync.WaitGroup
	released.Go(func() { release(ctx) })
	if s.set != nil {
		if err := s.set.Close(ctx); err != nil { // with other servers on the store most stops end so
			s.log.Info("unused IDs were not taken back and are lost", "store", s.opts.Store.Name, "err", err)
		}
	}
	released.Wait()
	return s.close()
}

// drain closes the listener and lets requests finish for half of the shutdown timeout. Requests
// that then still wait for the store get an error, and drain cuts the remaining connections. The
// rest of the time is for giving back and closing.
func (s *Server) drain() {
	defer s.cancel(errStopping)
	if s.shutdown(s.cfg.ShutdownTimeout/2) == nil {
		return
	}
	s.cancel(errStopping)
	if s.shutdown(s.cfg.ShutdownTimeout/10) == nil {
		return
	}
	s.log.Warn("requests cut off", "after", s.cfg.ShutdownTimeout*6/10)
	if s.lane != nil {
		s.lane.cut()
	}
	_ = s.http.Close() // vanished connections need no close
	if s.conns != nil {
		s.conns.Close()
	}
	if s.grpc != nil {
		s.grpc.Close()
	}
}

// shutdown ends all front ends at the same time.
func (s *Server) shutdown(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ends := []func(context.Context) error{s.shutdownHTTP}
	if s.conns != nil {
		ends = append(ends, s.conns.Shutdown)
	}
	if s.grpc != nil {
		ends = append(ends, s.grpc.Shutdown)
	}
	var all errgroup.Group
	for _, end := range ends {
		all.Go(func() error { return end(ctx) })
	}
	return all.Wait()
}

func (s *Server) shutdownHTTP(ctx context.Context) error {
	s.announce()
	if s.lane != nil {
		return s.lane.shutdown(ctx, s.http)
	}
	return s.http.Shutdown(ctx)
}
