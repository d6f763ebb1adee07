package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/server/loopback"
	"github.com/leaf-id/leaf/worker"
)

// aheadMargin is added to how far IDs may run ahead of the clock, for a tick of a layout
// and a clock that is a little off.
const aheadMargin = 2 * time.Second

// lookTimeout bounds how long the start waits to hear whether a store has worker IDs.
const lookTimeout = 3 * time.Second

// addSnowflake adds the time-based scheme to what is served, or says why it is off; the
// registry is closed with the function that it returns.
func addSnowflake(ctx context.Context, opts *server.Options, cfg config.Config, base base) (closeRegistry func() error, err error) {
	if !cfg.Snowflake.Enable {
		opts.Off[issuer.Snowflake] = cmp.Or(cfg.SnowflakeOff, "snowflake.enable is false")
		return nothing, nil
	}
	if ownWorkers(cfg) {
		if why := whyNoWorkers(ctx, base.url, opts.Listener.Addr()); why != "" {
			opts.Off[issuer.Snowflake] = why
			opts.Logger.Warn("time-based IDs are not served: " + why)
			return nothing, nil
		}
	}
	url := cmp.Or(cfg.Workers, base.url)
	registry, terms, err := drivers.OpenRegistry(url, registryOptions(opts, cfg, base))
	if err != nil {
		return nil, err
	}
	state, err := openState(url, base)
	if err != nil {
		return nil, errors.Join(err, registry.Close())
	}
	opts.Snowflake = &server.Snowflake{
		Registry:     registry,
		RegistryName: drivers.Redact(url),
		Layouts:      cfg.Snowflake.Served(),
		Implicit:     ownWorkers(cfg),
		Wait:         cfg.Snowflake.Wait,
		Keeper:       keeperOptions(cfg.Snowflake, terms),
	}
	opts.Snowflake.Keeper.State = state
	return registry.Close, nil
}

// whyNoWorkers says why the store's database, which nobody has named as the registry of
// worker IDs, is not to be one. A database that cannot be asked may well be.
func whyNoWorkers(ctx context.Context, url string, listen net.Addr) string {
	if drivers.OnThisMachine(url) && !loopback.Is(listen) {
		return fmt.Sprintf("this server listens on %s, which other machines reach, while its worker ID would come from a database "+
			"of this machine alone: two such machines would issue the same IDs. Name where worker IDs come from with --workers URL "+
			"(--workers %s if this is the only machine)", listen, shellWord(drivers.Redact(url)))
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if ok, err := drivers.RegistryExists(ctx, url); ok || err != nil {
		return ""
	}
	return fmt.Sprintf("the store has no table of worker IDs: create it with 'leaf init --workers %s' and start again, or set "+
		"snowflake.enable to false", shellWord(drivers.Redact(url)))
}

func registryOptions(opts *server.Options, cfg config.Config, base base) *drivers.RegistryOptions {
	o := &drivers.RegistryOptions{Logger: opts.Logger, Ahead: cfg.Snowflake.MaxAhead + aheadMargin}
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

// openState opens what this server remembers of its worker ID; nil without a data
// directory.
func openState(url string, base base) (*worker.State, error) {
	if base.dir == nil {
		return nil, nil
	}
	key, err := drivers.RegistryKey(url)
	if err != nil {
		return nil, err
	}
	return base.dir.State(key)
}

func keeperOptions(c config.Snowflake, terms drivers.Terms) worker.Options {
	o := worker.Options{
		Horizon:    c.Horizon,
		MaxAhead:   c.MaxAhead,
		Tolerance:  c.ClockTolerance,
		Reclaim:    terms.Reclaim,
		Settle:     terms.Settle,
		ClaimDelay: terms.ClaimDelay,
	}
	if terms.MaxAhead > 0 {
		o.MaxAhead = min(o.MaxAhead, terms.MaxAhead)
	}
	return o
}
