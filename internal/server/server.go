// Package server is a Leaf server: the front ends on one listener, and the order in
// which it starts and stops. It knows no driver; whoever opens the store closes it.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Defaults of [Options].
const (
	DefaultListen          = "127.0.0.1:8080"
	DefaultShutdownTimeout = 10 * time.Second
)

// Options configures a [Server]. The zero value of a field means its default.
type Options struct {
	// Listen is the TCP address for HTTP and gRPC; default [DefaultListen]. Port 0
	// takes a free one.
	Listen string

	// Listener is what to listen on instead, already open; it is closed in any case.
	// Listen then only says how the address was asked for.
	Listener net.Listener

	// StartWait has the port stay closed until every scheme is ready, for so long at most:
	// proxies that do not probe then send no request too early. Default 0, not at all.
	StartWait time.Duration

	// Store is where the segments come from; nil: the segment scheme is not served.
	// It stays open.
	Store segment.Store

	// StoreName is what people are told about the store. It holds no credentials.
	StoreName string

	// Ticket says that the store deals tickets: the scheme of that name is served too.
	Ticket bool

	// Segment configures the generators; nil: its defaults.
	Segment *segment.SetOptions

	// Times configures the time-based schemes; nil: none is served.
	Times *Times

	// Off says why a scheme is not served, by its name.
	Off map[string]string

	// MaxBatch is the most IDs in one request; default [issuer.DefaultMaxBatch].
	MaxBatch int

	// DrainDelay is how long the server goes on serving, not ready, before it stops:
	// load balancers need that long to notice. Default 0, not at all.
	DrainDelay time.Duration

	// ShutdownTimeout bounds the stop after DrainDelay, Close included; default
	// [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration

	// Close closes the store and what else was opened for the server, when nothing uses
	// it any more; nil: nothing is to be closed. [Server.Run] calls it.
	Close func() error

	// Version is what Status tells.
	Version string

	// Logger receives what an operator should know; nil discards it.
	Logger *slog.Logger
}

// A Server serves IDs over the network. [Server.Run] must be called once after New:
// it also releases what New took.
type Server struct {
	opts     Options
	log      *slog.Logger
	addr     net.Addr
	listener net.Listener // with StartWait closed until Run opens it
	set      *segment.Set // nil: no segment scheme
	times    *times       // nil: no time-based scheme
	http     *http.Server
	cancel   context.CancelCauseFunc // ends the contexts of all requests
	stopping atomic.Bool
}

// New listens and returns a Server that [Server.Run] makes serve. It waits for neither
// the store nor the registry of worker IDs.
func New(opts Options) (_ *Server, err error) {
	opts.Listen = cmp.Or(opts.Listen, DefaultListen)
	opts.ShutdownTimeout = cmp.Or(opts.ShutdownTimeout, DefaultShutdownTimeout)
	if opts.Listener == nil {
		if opts.Listener, err = net.Listen("tcp", opts.Listen); err != nil {
			return nil, fmt.Errorf("start server: %w", err)
		}
	}
	s := &Server{opts: opts, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), addr: opts.Listener.Addr(), listener: opts.Listener}
	if opts.Store == nil && opts.Times == nil {
		err = errors.New("nothing to serve")
	}
	if err == nil && opts.Times != nil {
		s.times, err = newTimes(*opts.Times, s.Addr(), s.log)
	}
	if err != nil {
		opts.Listener.Close()
		return nil, fmt.Errorf("start server: %w", err)
	}
	if opts.Store != nil {
		s.set = segment.NewSet(opts.Store, opts.Segment)
	}
	s.http, s.cancel = newHTTP(s.handler(), s.log)
	if opts.StartWait > 0 {
		_ = s.listener.Close() // it has shown that the port is free, and which it is
	}
	return s, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.addr }

// address is Addr for people: all interfaces are named as they were asked for, since
// the system calls those of IPv4 "[::]" as well.
func (s *Server) address() string {
	asked, _, err := net.SplitHostPort(s.opts.Listen)
	tcp, ok := s.Addr().(*net.TCPAddr)
	if err != nil || !ok || !tcp.IP.IsUnspecified() {
		return s.Addr().String()
	}
	return net.JoinHostPort(cmp.Or(asked, "0.0.0.0"), strconv.Itoa(tcp.Port))
}

// handler wires the front ends.
func (s *Server) handler() http.Handler {
	opts := &frontend.Options{
		IDs:       issuer.New(s.sources(), &issuer.Options{MaxBatch: s.opts.MaxBatch, Off: s.opts.Off}),
		Ready:     s.ready,
		Listen:    s.Addr(),
		Address:   s.address(),
		Version:   s.opts.Version,
		Started:   time.Now(),
		StoreName: s.opts.StoreName,
	}
	if s.set != nil {
		opts.Tags = issuer.NewTags(s.opts.Store, s.set, s.log)
	}
	if s.times != nil {
		opts.Workers, opts.Layouts = s.times.workers, s.times.layouts
		opts.Registry = s.opts.Times.RegistryName
	}
	mux := http.NewServeMux()
	rpcapi.Register(mux, opts)
	return boundBody(httpapi.New(mux, opts), bodyTimeout)
}

// sources lists what makes the IDs, by scheme.
func (s *Server) sources() map[string]issuer.Source {
	sources := make(map[string]issuer.Source)
	if s.set != nil {
		sources[issuer.Segment] = issuer.Numbers(s.set)
		if s.opts.Ticket {
			sources[issuer.Ticket] = sources[issuer.Segment]
		}
	}
	if s.times != nil {
		for name, source := range s.times.sources {
			sources[name] = issuer.Numbers(source)
		}
	}
	return sources
}

// ready says why no requests for a scheme should be sent here. If that is empty, every
// scheme that is served must be able to answer them.
func (s *Server) ready(scheme string) error {
	if s.stopping.Load() {
		return errors.New("the server is stopping")
	}
	if s.set != nil && (scheme == "" || scheme == issuer.Segment || scheme == issuer.Ticket) {
		if err := s.storeReady(); err != nil {
			return err
		}
	}
	if s.times != nil && (scheme == "" || s.times.sources[scheme] != nil) {
		err := s.times.keeper.Err()
		if scheme == "" && s.opts.Times.Implicit && errors.Is(err, worker.ErrNotCreated) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.times.names(), err)
		}
	}
	return nil
}

func (s *Server) storeReady() error {
	select {
	case <-s.set.Ready():
		if err := s.set.Unfit(); err != nil {
			return fmt.Errorf("the store cannot be used: %w", err)
		}
		return nil
	default:
	}
	if err := s.set.StoreErr(); err != nil {
		return fmt.Errorf("the store does not serve: %w", err)
	}
	return errors.New("the store has not answered yet")
}
