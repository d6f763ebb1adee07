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
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/segment"
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

	// Store is where the segments come from; required. It stays open.
	Store segment.Store

	// StoreName is what people are told about the store. It holds no credentials.
	StoreName string

	// Segment configures the generators; nil: its defaults.
	Segment *segment.SetOptions

	// MaxBatch is the most IDs in one request; default [issuer.DefaultMaxBatch].
	MaxBatch int

	// StopDelay is how long the server goes on serving, not ready, before it stops:
	// load balancers need that long to notice. Default 0, not at all.
	StopDelay time.Duration

	// ShutdownTimeout bounds the stop after StopDelay; default [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration

	// Version is what Status tells.
	Version string

	// Logger receives what an operator should know; nil discards it.
	Logger *slog.Logger
}

// A Server serves the IDs of one store. [Server.Run] must be called once after New:
// it also releases what New took.
type Server struct {
	opts     Options
	log      *slog.Logger
	listener net.Listener
	set      *segment.Set
	http     *http.Server
	cancel   context.CancelCauseFunc // ends the contexts of all requests
	stopping atomic.Bool
}

// New listens and returns a Server that [Server.Run] makes serve. It does not wait
// for the store.
func New(opts Options) (*Server, error) {
	if opts.Store == nil {
		if opts.Listener != nil {
			opts.Listener.Close()
		}
		return nil, errors.New("start server: no store")
	}
	opts.Listen = cmp.Or(opts.Listen, DefaultListen)
	opts.ShutdownTimeout = cmp.Or(opts.ShutdownTimeout, DefaultShutdownTimeout)
	if opts.Listener == nil {
		var err error
		if opts.Listener, err = net.Listen("tcp", opts.Listen); err != nil {
			return nil, fmt.Errorf("start server: %w", err)
		}
	}
	s := &Server{
		opts:     opts,
		log:      cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		listener: opts.Listener,
		set:      segment.NewSet(opts.Store, opts.Segment),
	}
	s.http, s.cancel = newHTTP(s.handler(), s.log)
	return s, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

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
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: s.set}, &issuer.Options{MaxBatch: s.opts.MaxBatch})
	tags := issuer.NewTags(s.opts.Store, s.set, s.log)
	mux := http.NewServeMux()
	rpcapi.Register(mux, ids, tags, rpcapi.Info{
		Version:   s.opts.Version,
		Started:   time.Now(),
		Listen:    s.Addr(),
		Address:   s.address(),
		StoreName: s.opts.StoreName,
	})
	h := httpapi.New(mux, ids, &httpapi.Options{Tags: tags, Ready: s.ready, Listen: s.Addr()})
	return boundBody(h, bodyTimeout)
}

// ready says why no requests should be sent here.
func (s *Server) ready() error {
	if s.stopping.Load() {
		return errors.New("the server is stopping")
	}
	select {
	case <-s.set.Ready():
		return nil
	default:
	}
	if err := s.set.StoreErr(); err != nil {
		return fmt.Errorf("the store %s does not serve: %w", s.opts.StoreName, err)
	}
	return fmt.Errorf("the store %s has not answered yet", s.opts.StoreName)
}
