// Package server is a Leaf server: it makes the generators that a configuration asks for
// over the backends it is given, serves them to the front ends on its ports, and
// starts and stops all that in order. It knows no driver.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/sdnotify"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/browser"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/server/respapi"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/segment"
)

// Options configures a [Server].
type Options struct {
	Config config.Config

	// Store keeps the counters: what Config.Store names, or the embedded database. nil if
	// neither the segment scheme nor Workers needs it.
	Store *backend.Backend

	// Workers keeps the worker IDs: what Config.Workers names. nil: Store does.
	Workers *backend.Backend

	// Version is what Status tells.
	Version string

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger

	// Load reads the configuration again, for [Server.Reload]; nil: it never changes.
	Load func() (config.Config, error)

	// ConfigFile is the file that Load reads; empty: no file. The server notices its changes.
	ConfigFile string

	// Level is that of Logger, which a reload changes; nil: it does not.
	Level *slog.LevelVar

	// Notify tells systemd how the server is doing.
	Notify *sdnotify.Notifier

	answerTimeout time.Duration // shorter in tests; 0: the usual
	filesInterval time.Duration // likewise
	unsent        int64         // likewise
}

// ErrRESP is wrapped where the address for the Redis protocol cannot be had.
var ErrRESP = errors.New("port of the Redis protocol")

// ErrGRPC is wrapped where the address for gRPC alone cannot be had.
var ErrGRPC = errors.New("port of gRPC")

// A Server serves IDs over the network. [Server.Run] must be called once after New:
// it also releases what New took.
type Server struct {
	opts     Options
	cfg      config.Config
	log      *slog.Logger
	web      *port // HTTP and gRPC
	redis    *port // the Redis protocol; nil: off
	grpcPort *port // gRPC alone; nil: off
	gate     *access.Gate
	tls      *certificates       // nil: no TLS
	dir      *datadir.Dir        // nil: no data directory
	memory   *segment.FileMemory // nil: nothing is remembered of the counters
	off      map[string]string   // why a scheme is not served, by its name
	store    segment.Store       // nil: no segment scheme
	set      *segment.Set        // likewise
	times    *times              // nil: no time-based scheme
	http     *http.Server
	browser  *browser.Handler
	access   *frontend.AccessLog
	grpc     *rpcapi.GRPC            // nil: no port for gRPC alone
	lane     *lane                   // nil: net/http has the port alone
	conns    *conns.Server           // nil: no Redis protocol
	traces   *telemetry.Traces       // nil: nothing is traced
	cancel   context.CancelCauseFunc // ends the contexts of all requests
	announce func()                  // ends what lasts longer than a request
	stopping atomic.Bool
	counts   counts // for the metrics
	verdict  verdict

	held       atomic.Bool // time-based IDs could be issued before
	noRegistry atomic.Bool // the registry of worker IDs was not created when it last answered
	serving    atomic.Bool // Run serves, and was not told to stop

	reloading sync.Mutex
	current   atomic.Pointer[config.Config] // cfg with what was taken up since the start
}

// New listens, opens the data directory and the backends, and returns a Server for [Server.Run]. It
// creates a missing embedded database. It does not wait for any other store or for a registry of
// worker IDs. It closes the backends after an error too.
func New(ctx context.Context, opts Options) (_ *Server, err error) {
	s := &Server{opts: opts, cfg: opts.Config, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), off: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if problems := s.cfg.Validate(); len(problems) > 0 {
		return nil, problems
	}
	if err = s.bind(); err != nil { // first: a taken port then leaves nothing behind
		return nil, err
	}
	s.openTraces()
	if err = s.openGate(); err != nil {
		return nil, err
	}
	if err = s.compareHosts(ctx); err != nil {
		return nil, err
	}
	if err = s.openData(ctx); err != nil {
		return nil, err
	}
	if err = s.openStore(); err != nil {
		return nil, err
	}
	if err = s.openTimes(); err != nil {
		return nil, err
	}
	if s.store == nil && s.times == nil {
		return nil, fmt.Errorf("nothing is left to serve: snowflake: %s", s.off[issuer.Snowflake])
	}
	if s.store != nil {
		s.counts.store = telemetry.NewStoreCalls()
		opts := s.segmentOptions()
		opts.OnCall = telemetry.StoreCall(s.traces, s.counts.store, kindOf(s.opts.Store))
		if s.traces != nil {
			opts.RefillContext = telemetry.SpanContext
		}
		s.set = segment.NewSet(s.store, opts)
	}
	s.wire()
	if s.cfg.StartWait > 0 {
		for _, p := range s.ports() {
			p.close() // it has shown that it is free, and which it is
		}
	}
	return s, nil
}

// bind takes the ports.
func (s *Server) bind() (err error) {
	if s.web, err = bind(s.cfg.Listen, nil); err != nil {
		return err
	}
	if s.cfg.RESP != config.Off {
		if s.redis, err = bind(s.cfg.RESP, ErrRESP); err != nil && !s.servesWithoutRESP(err) {
			return err
		}
	}
	if s.cfg.GRPC != config.Off {
		s.grpcPort, err = bind(s.cfg.GRPC, ErrGRPC)
		return err
	}
	return nil
}

// servesWithoutRESP reports whether err is a taken default port of the Redis protocol, which nobody
// chose: the server then runs without it. It logs that.
func (s *Server) servesWithoutRESP(err error) bool {
	if !errors.Is(err, syscall.EADDRINUSE) || s.cfg.RESP != config.Default().RESP {
		return false
	}
	s.log.Warn("another program listens on the default port of the Redis protocol: this server runs without that protocol; "+
		"choose another address with resp, or turn it off", "address", s.cfg.RESP)
	return true
}

func (s *Server) openStore() (err error) {
	if !s.cfg.Segment.Enable {
		s.off[issuer.Segment] = "segment.enable is false"
		return nil
	}
	s.store, err = s.opts.Store.Store()
	return err
}

func (s *Server) segmentOptions() *segment.SetOptions {
	c := s.cfg.Segment
	opts := &segment.SetOptions{
		Options: segment.Options{
			OutageBudget:   c.OutageBudget,
			MaxStock:       c.MaxStock,
			Wait:           c.Wait,
			CallTimeout:    c.CallTimeout,
			RegressionJump: c.RegressionJump,
			Logger:         s.log,
		},
		MaxCalls:      c.MaxCalls,
		CheckInterval: c.CheckInterval,
	}
	if c.Policy == config.PolicyLeaf {
		opts.Policy = segment.Leaf
	}
	if s.opts.Store != nil {
		opts.StoreID = s.opts.Store.Traits.StoreID
	}
	if s.memory != nil {
		opts.Memory = s.memory
	}
	return opts
}

// close closes what New was given and opened.
func (s *Server) close() (err error) {
	for _, p := range s.ports() {
		p.close()
	}
	for _, b := range []*backend.Backend{s.opts.Workers, s.opts.Store} {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	if s.dir != nil {
		err = errors.Join(err, s.dir.Close())
	}
	return errors.Join(err, s.traces.Close()) // last: calls that the stop has made are in it
}

// GRPCAddr returns the address for gRPC alone, nil if that is off.
func (s *Server) GRPCAddr() net.Addr {
	if s.grpcPort == nil {
		return nil
	}
	return s.grpcPort.addr
}

// Addr returns the address that the server listens on for HTTP, with gRPC.
func (s *Server) Addr() net.Addr { return s.web.addr }

// RESPAddr returns the address of the Redis protocol, nil if that is off.
func (s *Server) RESPAddr() net.Addr {
	if s.redis == nil {
		return nil
	}
	return s.redis.addr
}

// wire makes the front ends.
func (s *Server) wire() {
	opts := s.frontend()
	opts.Context, s.cancel = context.WithCancelCause(context.Background())
	draining := make(chan struct{})
	opts.Stopping, s.announce = draining, sync.OnceFunc(func() { close(draining) })
	mux := http.NewServeMux()
	rpcapi.Register(mux, opts)
	s.browser = browser.New(s.cfg.CORSOrigins, boundBody(httpapi.New(mux, opts), frontend.BodyTimeout))
	s.browser.CheckHost = opts.CheckPage
	web := &observer{next: s.browser, access: opts.AccessLog, name: opts.CallerName}
	if s.traces != nil {
		web.next = &tracer{s.traces, s.browser}
	}
	h := yield(web)
	s.http = newHTTP(opts, h, true, s.tls != nil || !conns.HasLoops)
	s.lane = s.newLane(opts, h)
	if s.redis != nil {
		o := opts.Conns
		o.Refusal = respapi.Full
		s.conns = conns.New(opts.Context, respapi.New(opts).Serve, &o)
	}
	if s.grpcPort != nil {
		s.grpc = rpcapi.NewGRPC(opts)
	}
}

// frontend returns the services of the front ends.
func (s *Server) frontend() *frontend.Options {
	s.access = frontend.NewAccessLog(s.log, s.cfg.Log.Access)
	opts := &frontend.Options{
		IDs:      issuer.New(s.sources(), &issuer.Options{MaxBatch: s.cfg.MaxBatch, MaxRange: s.cfg.MaxRange, Off: s.off}),
		Access:   s.gate,
		Turns:    frontend.NewTurns(),
		Health:   s.health,
		Requests: telemetry.NewFrontEnds(frontend.Reasons()),
		CutKey:   func(key, cut string) { s.counts.cut.note(s.log, key, cut) },
		Traces:   s.traces,
		Logger:   s.log,
		Listen:   s.Addr(),
		Address:  s.web.String(),
		Version:  s.opts.Version,
		Started:  time.Now(),
	}
	if s.set != nil {
		opts.Tags, opts.StoreName = issuer.NewTags(s.store, s.set, s.log), s.opts.Store.Name
		opts.OutageBudget, opts.Route = s.cfg.Segment.OutageBudget, s.opts.Store.Route
	}
	if s.times != nil {
		opts.Workers, opts.Layouts, opts.Registry = s.times.workers, s.times.layouts, s.times.backend.Name
	}
	if s.redis != nil {
		opts.RESP = s.redis.String()
	}
	if s.tls != nil {
		opts.TLS = s.tls.Config()
	}
	opts.AccessLog = s.access
	opts.AnswerTimeout = cmp.Or(s.opts.answerTimeout, frontend.AnswerTimeout+s.longestWait())
	opts.Conns = s.limits()
	opts.Unsent = opts.Conns.Budget
	opts.Metrics = s.metrics(opts)
	return opts
}

// limits returns the limits of connections on each port.
func (s *Server) limits() conns.Options {
	return conns.Options{
		MaxConns: s.cfg.Limits.Connections, MaxPerClient: s.cfg.Limits.ConnectionsPerClient, WriteTimeout: s.opts.answerTimeout,
		Budget: conns.NewBudget(cmp.Or(s.opts.unsent, conns.DefaultBudget)), Logger: s.log,
	}
}

// sources lists what makes the IDs, by scheme.
func (s *Server) sources() map[string]issuer.Source {
	sources := make(map[string]issuer.Source)
	if s.set != nil {
		sources[issuer.Segment] = issuer.Numbers(s.set)
		if s.opts.Store.Traits.Ticket {
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
