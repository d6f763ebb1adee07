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
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/filewatch"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/sdnotify"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
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

	// Files has looked at ConfigFile before it was read; nil: New does.
	Files *filewatch.Watcher

	// Level is that of Logger, which a reload changes; nil: it does not.
	Level *slog.LevelVar

	// Notify tells systemd how the server is doing.
	Notify *sdnotify.Notifier

	answerTimeout time.Duration // shorter in tests; 0: the usual
	filesInterval time.Duration // likewise
	unsent        int64         // likewise
}

// A Server serves IDs over the network. [Server.Run] must be called once after New:
// it also releases what New took.
type Server struct {
	opts       Options
	cfg        config.Config
	log        *slog.Logger
	ports      []*port // the first one is never off
	gate       *access.Gate
	tls        *certificates       // nil: no TLS
	dir        *datadir.Dir        // nil: no data directory
	memory     *segment.FileMemory // nil: nothing is remembered of the counters
	off        map[string]string   // why a scheme is not served, by its name
	store      segment.Store       // nil: no segment scheme
	set        *segment.Set        // likewise
	times      *times              // nil: no time-based scheme
	access     *frontend.AccessLog
	traces     *telemetry.Traces       // nil: nothing is traced
	cancel     context.CancelCauseFunc // ends the contexts of all requests
	announce   func()                  // ends what lasts longer than a request
	unheard    []*backend.Backend      // with hosts that have not been compared yet; belongs to watch
	stopping   atomic.Bool
	ended      chan error // why a member of a cluster ends the server
	counts     counts     // for the metrics
	cached     cachedReport
	conditions atomic.Pointer[string] // names of the problems of the last report

	held       atomic.Bool // time-based IDs could be issued before
	noRegistry atomic.Bool // the registry of worker IDs did not exist when it last answered
	serving    atomic.Bool // Run serves, and was not told to stop

	watchers  sync.WaitGroup // what watch has started, but for files
	reloading sync.Mutex
	failed    error                         // of the last reload
	current   atomic.Pointer[config.Config] // cfg with what was taken up since the start
}

// New listens, opens the data directory and the backends, and returns a Server for [Server.Run]. It
// creates a missing embedded database. It does not wait for any other store or for a registry of
// worker IDs. It closes the backends after an error too.
func New(ctx context.Context, opts Options) (_ *Server, err error) {
	s := &Server{opts: opts, cfg: opts.Config, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), off: map[string]string{}, ended: make(chan error, 1)}
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
		for _, p := range s.ports {
			p.close() // it has shown that it is free, and which it is
		}
	}
	return s, nil
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
			MaskKeys:       c.Keys,
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
	for _, p := range s.ports {
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

// wire makes the front ends.
func (s *Server) wire() {
	opts := s.frontend()
	opts.Context, s.cancel = context.WithCancelCause(context.Background())
	draining := make(chan struct{})
	opts.Stopping, s.announce = draining, sync.OnceFunc(func() { close(draining) })
	for _, p := range s.ports {
		o := *opts
		o.Listen = p.addr
		p.protocol = p.serve(&o)
	}
}

// frontend returns the services of the front ends.
func (s *Server) frontend() *frontend.Options {
	s.access = frontend.NewAccessLog(s.log, s.cfg.Log.Access)
	opts := &frontend.Options{
		IDs:         issuer.New(s.sources(), &issuer.Options{MaxBatch: s.cfg.MaxBatch, MaxRange: s.cfg.MaxRange, Off: s.off}),
		Access:      s.gate,
		Batches:     frontend.NewBatchLimiter(),
		Health:      s.health,
		Requests:    telemetry.NewFrontEnds(frontend.Reasons()),
		CutKey:      func(key, cut string) { s.counts.cut.note(s.log, key, cut) },
		Traces:      s.traces,
		AccessLog:   s.access,
		Logger:      s.log,
		CORSOrigins: s.cfg.CORSOrigins,
		Conns: conns.Options{
			MaxConns:     s.cfg.Limits.Connections,
			MaxPerClient: s.cfg.Limits.ConnectionsPerClient,
			WriteTimeout: s.opts.answerTimeout,
			Budget:       conns.NewBudget(cmp.Or(s.opts.unsent, conns.DefaultBudget)),
			Logger:       s.log,
		},
		AnswerTimeout: cmp.Or(s.opts.answerTimeout, frontend.AnswerTimeout+s.longestWait()),
		Address:       s.main().String(),
		Version:       s.opts.Version,
		Started:       time.Now(),
	}
	for _, p := range s.ports[1:] {
		opts.Ports = append(opts.Ports, frontend.Port{Name: p.Key, Title: p.Title, Address: p.String()})
	}
	if s.tls != nil {
		opts.TLS = s.tls.Config()
	}
	if s.set != nil {
		opts.Tags, opts.StoreName = issuer.NewTags(s.store, s.set.Server(), s.log), s.opts.Store.Name
		opts.Tags.UseMaskKeys(s.cfg.Segment.Keys)
		opts.OutageBudget, opts.Route = s.cfg.Segment.OutageBudget, s.opts.Store.Route()
	}
	if s.times != nil {
		opts.Workers, opts.Layouts, opts.Registry = s.times.workers, s.times.layouts, s.times.backend.Name
	}
	collector := telemetry.NewCollector(s.metricSources(opts))
	opts.Metrics, opts.Snapshot = telemetry.NewHandler(collector, s.log), collector.Snapshot
	return opts
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
