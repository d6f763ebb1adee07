package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// aheadMargin is added to how far IDs may run ahead of the clock, for a tick of a layout
// and a clock that is a little off.
const aheadMargin = 2 * time.Second

// addTimes adds the time-based schemes to what is served, or says why they are off; the
// registry is closed with the function that it returns.
func addTimes(opts *server.Options, cfg config.Config, base base) (closeRegistry func() error, err error) {
	workers, closeRegistry := base.store, nothing
	if cfg.Workers != "" {
		if workers, err = drivers.Open(cfg.Workers, &drivers.Options{Logger: opts.Logger}); err != nil {
			return nil, err
		}
		closeRegistry = workers.Close
		defer func() {
			if err != nil {
				err = errors.Join(err, workers.Close())
			}
		}()
	}
	if workers != nil && workers.Traits.Disposable {
		cfg = forStarts(cfg)
	}
	schemes := timeSchemes(opts, cfg)
	if len(schemes) == 0 {
		return closeRegistry, nil
	}
	if ownWorkers(cfg) {
		if why := whyNoWorkers(workers, opts.Listener.Addr()); why != "" {
			for _, s := range schemes {
				opts.Off[s.Name] = why
			}
			opts.Logger.Warn("time-based IDs are not served: "+why, "store", workers.Name)
			return nothing, nil
		}
	}
	var state *worker.StateFile
	registryOpts := registryOptions(opts, schemes, base)
	switch {
	case base.dir == nil:
	case workers.Traits.Disposable: // it has no start before it to go on from
		registryOpts.Memory, err = base.dir.Memory(workers.Key, opts.Logger)
	default:
		state = base.dir.State()
	}
	if err != nil {
		return nil, err
	}
	registry, err := workers.Registry(registryOpts)
	if err != nil {
		return nil, err
	}
	bound(schemes, workers.Traits.MaxAhead)
	opts.Times = &server.Times{
		Registry:     registry,
		RegistryName: workers.Name,
		Schemes:      schemes,
		Implicit:     ownWorkers(cfg) && cfg.UID.Enable != config.EnableTrue,
		Keeper: worker.Options{
			State:       state,
			RegistryKey: workers.Key,
			Horizon:     cfg.Snowflake.Horizon,
			Tolerance:   cfg.Snowflake.ClockTolerance,
			Reclaim:     workers.Traits.Reclaim,
			Settle:      workers.Traits.Settle,
			ClaimDelay:  workers.Traits.ClaimDelay,
		},
	}
	return closeRegistry, nil
}

// bound has no scheme run further ahead of the clock than the registry allows; 0: as far
// as it likes.
func bound(schemes []server.TimeScheme, ahead time.Duration) {
	for i := range schemes {
		if g := &schemes[i].Generators; ahead > 0 {
			g.MaxAhead = min(g.MaxAhead, ahead)
		}
	}
}

// timeSchemes returns the time-based schemes that are to be served, and says why others
// are not.
func timeSchemes(opts *server.Options, cfg config.Config) []server.TimeScheme {
	var schemes []server.TimeScheme
	if cfg.Snowflake.Enable {
		schemes = append(schemes, server.TimeScheme{
			Name:       issuer.Snowflake,
			Layouts:    cfg.Snowflake.Served(),
			Generators: snowflake.Options{MaxAhead: cfg.Snowflake.MaxAhead, Wait: cfg.Snowflake.Wait},
		})
	} else {
		opts.Off[issuer.Snowflake] = cmp.Or(cfg.SnowflakeOff, "snowflake.enable is false")
	}
	switch {
	case cfg.ServesUID():
		schemes = append(schemes, server.TimeScheme{Name: issuer.UID, Layouts: cfg.UID.Served(), Generators: cfg.UID.Generators()})
	case cfg.UID.Enable == config.EnableAuto && cfg.WhyNotUID() != "":
		opts.Off[issuer.UID] = "uid.enable is auto, and " + cfg.WhyNotUID()
	case cfg.UID.Enable == config.EnableAuto:
		opts.Off[issuer.UID] = "uid.enable is auto, which means true with the embedded database and with WORKER_NODE: set it to true"
	default:
		opts.Off[issuer.UID] = "uid.enable is false"
	}
	return schemes
}

// forStarts leaves snowflake out where each start uses up a worker ID, unless it has as
// many of them as uid.
func forStarts(cfg config.Config) config.Config {
	if !cfg.Snowflake.Enable {
		return cfg
	}
	for _, l := range cfg.Snowflake.Served() {
		if l.WorkerBits < cfg.UID.WorkerBits {
			cfg.Snowflake.Enable = false
			cfg.SnowflakeOff = fmt.Sprintf("its layout %s has worker IDs up to %d, of which each start of a server would use one up for ever, as --workers with "+
				"layout=worker_node has it: give the layout %d worker bits as scheme uid has, or lease worker IDs (--workers without layout)",
				l.Name, l.MaxWorker(), cfg.UID.WorkerBits)
			break
		}
	}
	return cfg
}

// whyNoWorkers says why the store's database, which nobody has named as the registry of
// worker IDs, is not to be one. Whether it has the table of worker IDs shows later.
func whyNoWorkers(store *drivers.Backend, listen net.Addr) string {
	if store.Traits.Local && !frontend.IsLoopback(listen) {
		return fmt.Sprintf("this server listens on %s, which other machines reach, while its worker ID would come from a database "+
			"of this machine alone: two such machines would issue the same IDs. Name where worker IDs come from with --workers URL, "+
			"which may be the store's if this is the only machine", listen)
	}
	if store.Workers.Unfit != nil {
		return "the store keeps counters, no worker IDs: name where they come from with --workers URL"
	}
	return ""
}

func registryOptions(opts *server.Options, schemes []server.TimeScheme, base base) *drivers.RegistryOptions {
	o := &drivers.RegistryOptions{Ahead: aheadMargin}
	for _, s := range schemes {
		o.Ahead = max(o.Ahead, s.Generators.MaxAhead+aheadMargin)
	}
	if tcp, ok := opts.Listener.Addr().(*net.TCPAddr); ok {
		o.Port = tcp.Port
	}
	o.Lock = func(name string) (*os.File, error) {
		if base.dir == nil {
			return nil, errors.New("it needs the data directory: name another one with --data DIR")
		}
		return base.dir.Lock(name)
	}
	return o
}
