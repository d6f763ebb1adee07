package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// Bounds on what a connection may keep for itself. There is none on a whole request:
// its answer may have to wait for the store, or be long.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// errStopping is what requests that still wait when the server stops are told.
var errStopping = fmt.Errorf("the server is stopping: %w", leaf.ErrClosed)

// newHTTP returns an http.Server for HTTP/1.1 and HTTP/2 without TLS, and a function
// that ends the contexts of its requests.
func newHTTP(h http.Handler, log *slog.Logger) (*http.Server, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, cancel
}

// Run serves until ctx ends and then stops: it is not ready any more and, after the
// stop delay and within the shutdown timeout, accepts no connections, lets requests
// finish, and gives the IDs that are left back to the store, and the worker ID to its
// registry. It returns nil after an orderly stop.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("serving", s.about()...)
	release := func(context.Context) {}
	if s.times != nil {
		release = s.times.start(s.log)
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case <-ctx.Done():
		s.stopping.Store(true)
		time.Sleep(s.opts.StopDelay)
		s.stop(release)
		<-served
		return nil
	case err := <-served:
		s.stop(release)
		return fmt.Errorf("serve: %w", err)
	}
}

// about is what the first line of the log tells.
func (s *Server) about() []any {
	schemes := slices.Sorted(maps.Keys(s.sources()))
	about := []any{"url", "http://" + s.address(), "protocols", "HTTP, gRPC", "scheme", strings.Join(schemes, ", ")}
	if s.set != nil {
		about = append(about, "store", s.opts.StoreName)
	}
	if s.times != nil {
		about = append(about, "workers", s.opts.Times.RegistryName)
	}
	return append(about, "version", s.opts.Version)
}

// stop ends serving; release hands the worker ID back.
func (s *Server) stop(release func(context.Context)) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	s.drain()
	var released sync.WaitGroup
	released.Go(func() { release(ctx) })
	if s.set != nil {
		if err := s.set.Close(ctx); err != nil { // beside other servers that is how most stops go
			s.log.Info("unused IDs were not taken back and are lost", "store", s.opts.StoreName, "err", err)
		}
	}
	released.Wait()
	s.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond))
}

// drain closes the listener and lets requests finish for half of the shutdown timeout.
// Those that still wait for the store then are told that they are too late, and
// connections that are still open after that are cut. The rest of the time is left
// for giving back.
func (s *Server) drain() {
	defer s.cancel(errStopping)
	if s.shutdown(s.opts.ShutdownTimeout/2) == nil {
		return
	}
	s.cancel(errStopping)
	if s.shutdown(s.opts.ShutdownTimeout/10) == nil {
		return
	}
	s.log.Warn("requests cut off", "after", s.opts.ShutdownTimeout*6/10)
	_ = s.http.Close() // connections that are gone need no closing
}

func (s *Server) shutdown(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.http.Shutdown(ctx)
}
