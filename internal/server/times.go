package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// Times configures the time-based schemes, which share one worker ID.
type Times struct {
	// Registry is where the worker ID comes from; required. It stays open.
	Registry worker.Registry

	// RegistryName is what people are told about it. It holds no credentials.
	RegistryName string

	// Schemes are those that are served; at least one.
	Schemes []TimeScheme

	// Implicit says that nobody has asked for these schemes: a registry that was never
	// created then is no reason for the server not to be ready.
	Implicit bool

	// Keeper configures the lease. The server sets its Layouts, LeaseUsers, MaxAhead,
	// Clock, Owner and Logger itself.
	Keeper worker.Options
}

// A TimeScheme is a time-based scheme.
type TimeScheme struct {
	Name string

	// Layouts are served, the first one by default; required.
	Layouts issuer.Layouts

	// Generators configures the generators, but for the clock and the random start.
	Generators snowflake.Options
}

// times are the time-based schemes of a server.
type times struct {
	sources map[string]*issuer.Times
	layouts issuer.Layouts
	keeper  *worker.Keeper
	workers *issuer.Workers
}

func newTimes(o Times, addr net.Addr, log *slog.Logger) (*times, error) {
	t := &times{sources: make(map[string]*issuer.Times)}
	k := o.Keeper
	k.Clock, k.Owner, k.Logger = worker.NewClock(), owner(addr), log
	for _, s := range o.Schemes {
		s.Generators.Clock = k.Clock
		source, err := issuer.NewTimes(s.Name, s.Layouts, &s.Generators)
		if err != nil {
			return nil, err
		}
		t.sources[s.Name] = source
		t.layouts = append(t.layouts, s.Layouts...)
		k.Layouts, k.LeaseUsers = append(k.Layouts, source.Layouts()...), append(k.LeaseUsers, source.Generators()...)
		ahead := max(cmp.Or(s.Generators.MaxAhead, worker.DefaultMaxAhead), time.Millisecond)
		k.MaxAhead, k.LeastAhead = max(k.MaxAhead, ahead), min(cmp.Or(k.LeastAhead, ahead), ahead)
	}
	if err := t.layouts.Apart(); err != nil {
		return nil, err
	}
	var err error
	if t.keeper, err = worker.NewKeeper(o.Registry, &k); err != nil {
		return nil, err
	}
	for _, source := range t.sources {
		source.Explain(t.keeper.Err)
	}
	t.workers = issuer.NewWorkers(o.Registry, t.keeper, log)
	return t, nil
}

// names returns those of the schemes, for people.
func (t *times) names() string { return strings.Join(slices.Sorted(maps.Keys(t.sources)), ", ") }

// owner tells this process from others, for people.
func owner(addr net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	port := "0"
	if tcp, ok := addr.(*net.TCPAddr); ok {
		port = strconv.Itoa(tcp.Port)
	}
	return fmt.Sprintf("%s pid %d", net.JoinHostPort(host, port), os.Getpid())
}

// start has the keeper work. The returned function has it hand the lease back and
// waits for that until its context ends.
func (t *times) start(log *slog.Logger) (stop func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- t.keeper.Run(ctx) }()
	return func(limit context.Context) {
		cancel()
		var err error
		select {
		case err = <-done:
		case <-limit.Done():
			err = limit.Err()
		}
		if err != nil {
			log.Warn("the worker ID was not handed back; its lease runs out by itself", "err", err)
		}
	}
}
