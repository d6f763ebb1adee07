package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// staticHold is how long a static worker ID without a record waits. The record may have been
// lost with its data directory, and its last holder may have had the largest max_ahead, which
// its mark exceeds by 2 s, in a layout with ticks of a second. What this server's own max_ahead
// is says nothing about that holder.
const staticHold = config.LargestMaxAhead + 2*time.Second + time.Second

// times are the time-based schemes of a server, which share one worker ID.
type times struct {
	sources map[string]*issuer.Times
	layouts issuer.Layouts
	node    *snowflake.Node
	workers *issuer.Workers
	backend *backend.Backend

	// implicit says that the configuration does not ask for these schemes: a registry that
	// was never created then is no reason for the server not to be ready.
	implicit bool
}

// A timeScheme is a time-based scheme.
type timeScheme struct {
	name    string
	layouts issuer.Layouts // the first one is the default
	options snowflake.Options
}

// openTimes opens the registry of worker IDs and makes the generators of the time-based
// schemes, or says why they are off.
func (s *Server) openTimes() error {
	backend := cmp.Or(s.opts.Workers, s.opts.Store)
	if backend != nil && backend.Traits.Disposable {
		s.cfg = forStarts(s.cfg)
	}
	var schemes []timeScheme
	if schemes, s.off = timeSchemes(s.cfg, s.off); len(schemes) == 0 {
		return nil
	}
	if err := s.checkWorkers(); err != nil {
		for _, scheme := range schemes {
			s.off[scheme.name] = err.Error()
		}
		s.log.Warn("time-based IDs are not served", "store", backend.Name, "err", err)
		return nil
	}
	t := &times{
		sources:  make(map[string]*issuer.Times),
		backend:  backend,
		implicit: s.opts.Workers == nil && s.cfg.UID.Enable != config.EnableTrue,
	}
	o := snowflake.NodeOptions{Keeper: worker.Options{
		RegistryKey: backend.Key,
		Horizon:     s.cfg.Snowflake.Horizon,
		Tolerance:   s.cfg.Snowflake.ClockTolerance,
		Reclaim:     backend.Traits.Reclaim,
		Settle:      backend.Traits.Settle,
		ClaimDelay:  backend.Traits.ClaimDelay,
		Lock:        s.lockWorker,
		Owner:       owner(s.main().number()) + s.describe(),
		Health:      s.lastHealth,
		Logger:      s.log,
	}}
	o.Layouts = nodeLayouts(schemes, backend.Traits.MaxAhead)
	registry, err := s.openRegistry(backend, &o.Keeper)
	if err != nil {
		return err
	}
	if t.node, err = snowflake.NewNode(registry, &o); err != nil {
		return err
	}
	for _, scheme := range schemes {
		t.layouts = append(t.layouts, scheme.layouts...)
		t.sources[scheme.name] = issuer.NewTimes(scheme.name, scheme.layouts, t.node.Generator, t.node.Explain)
	}
	t.workers = issuer.NewWorkers(registry, t.node.Keeper(), s.log)
	t.workers.Lease(&o.Keeper)
	s.times = t
	return nil
}

// timeSchemes returns the time-based schemes to serve, and adds to off why others are not.
func timeSchemes(cfg config.Config, off map[string]string) ([]timeScheme, map[string]string) {
	var schemes []timeScheme
	if cfg.Snowflake.Enable {
		options := snowflake.Options{MaxAhead: cfg.Snowflake.MaxAhead, Wait: cfg.Snowflake.Wait}
		schemes = append(schemes, timeScheme{issuer.Snowflake, cfg.Snowflake.Served(), options})
	} else {
		off[issuer.Snowflake] = cmp.Or(cfg.SnowflakeOff, "snowflake.enable is false")
	}
	switch {
	case cfg.ServesUID():
		schemes = append(schemes, timeScheme{issuer.UID, cfg.UID.Served(), cfg.UID.Generators()})
	case cfg.UID.Enable == config.EnableAuto && cfg.UIDConflict() != "":
		off[issuer.UID] = "uid.enable is auto, and " + cfg.UIDConflict()
	case cfg.UID.Enable == config.EnableAuto:
		off[issuer.UID] = "uid.enable is auto, which means true with the embedded database and with WORKER_NODE: set it to true"
	default:
		off[issuer.UID] = "uid.enable is false"
	}
	return schemes, off
}

// forStarts turns snowflake off where each start uses up a worker ID, unless it has as
// many of them as uid.
func forStarts(cfg config.Config) config.Config {
	if !cfg.Snowflake.Enable {
		return cfg
	}
	for _, l := range cfg.Snowflake.Served() {
		if l.WorkerBits < cfg.UID.WorkerBits {
			cfg.Snowflake.Enable = false
			cfg.SnowflakeOff = fmt.Sprintf("its layout %s has worker IDs up to %d, and with layout=worker_node each start of a server uses one up for ever: "+
				"give the layout %d worker bits as scheme uid has, or lease worker IDs (workers without layout)", l.Name, l.MaxWorker(), cfg.UID.WorkerBits)
			break
		}
	}
	return cfg
}

// checkWorkers says why the store's database cannot be the registry of worker IDs, if the
// configuration names no other. Whether it has the table of worker IDs shows later.
func (s *Server) checkWorkers() error {
	switch store, public := s.opts.Store, s.public(); {
	case s.opts.Workers != nil:
		return nil
	case store.Traits.Local && public != nil:
		return fmt.Errorf("this server listens on %s, which other machines reach, and only this machine reaches its worker IDs: "+
			"two such machines would issue the same IDs: %w", public.addr, hint.ErrNoWorkers)
	case store.Workers.Unfit != nil:
		return fmt.Errorf("the store keeps counters, no worker IDs: %w", hint.ErrNoWorkers)
	}
	return nil
}

// nodeLayouts returns the layouts of all schemes. After those of each scheme comes its default one
// under the reserved name. Limit, if not 0, bounds how far all of them run ahead.
func nodeLayouts(schemes []timeScheme, limit time.Duration) (layouts []snowflake.NodeLayout) {
	for _, scheme := range schemes {
		o := scheme.options
		o.MaxAhead = cmp.Or(o.MaxAhead, worker.DefaultMaxAhead)
		if limit > 0 {
			o.MaxAhead = min(o.MaxAhead, limit)
		}
		for _, l := range scheme.layouts {
			o.RandomStart = l.RandomStart
			layouts = append(layouts, snowflake.NodeLayout{Name: l.Name, Layout: l.Layout, Options: o})
		}
		first := layouts[len(layouts)-len(scheme.layouts)]
		first.Name = first.Record("").Default(scheme.name).Name
		layouts = append(layouts, first)
	}
	return layouts
}

// ServedLayouts returns the layouts that a server with this configuration records with the
// registry in b.
func ServedLayouts(cfg config.Config, b *backend.Backend) (layouts []worker.ServedLayout) {
	if b.Traits.Disposable {
		cfg = forStarts(cfg)
	}
	schemes, _ := timeSchemes(cfg, make(map[string]string))
	for _, l := range nodeLayouts(schemes, 0) {
		layouts = append(layouts, l.Record(l.Name))
	}
	return layouts
}

// openRegistry opens the registry, and what this server remembers of its worker ID.
func (s *Server) openRegistry(b *backend.Backend, k *worker.Options) (_ worker.Registry, err error) {
	o := &backend.RegistryOptions{Lock: s.lock, Hold: staticHold, Port: s.main().number()}
	switch {
	case s.dir == nil:
	case b.Traits.Disposable: // a start has none before it to go on from
		o.Memory, err = s.dir.Memory(b.Key, s.log)
	default:
		k.State = s.dir.State()
	}
	if err != nil {
		return nil, err
	}
	forLab(k, o)
	return b.Registry(o)
}

// lockWorker locks a worker ID of a layout among the processes of this machine and ID space.
func (s *Server) lockWorker(l worker.ServedLayout, id int64) (io.Closer, error) {
	l.Name = s.cfg.IDSpace
	values := sha256.Sum256(fmt.Append(nil, l))
	return datadir.LockMachine(fmt.Sprintf("worker-%x-%d", values[:8], id))
}

func (s *Server) lock(name string) (*os.File, error) {
	if s.dir == nil {
		return nil, hint.ErrDataDir
	}
	return s.dir.Lock(name)
}

// owner tells this process from others, for people.
func owner(port int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s pid %d", net.JoinHostPort(host, strconv.Itoa(port)), os.Getpid())
}

// startNode claims a worker ID. The returned function hands it back, and waits for that
// until its context ends.
func (s *Server) startNode() (stop func(context.Context)) {
	if s.times == nil {
		return func(context.Context) {}
	}
	s.times.node.Start()
	return func(limit context.Context) {
		if err := s.times.node.Close(limit); err != nil {
			s.log.Warn("the worker ID was not handed back; its lease runs out by itself", "err", err)
		}
	}
}
