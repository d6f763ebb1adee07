package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/worker"
)

// Snowflake configures the time-based scheme.
type Snowflake struct {
	// Registry is where the worker ID comes from; required. It stays open.
	Registry worker.Registry

	// RegistryName is what people are told about it. It holds no credentials.
	RegistryName string

	// Layouts are served, the first one by default; required.
	Layouts issuer.Layouts

	// Implicit says that nobody has asked for this scheme: a registry that was never
	// created then is no reason for the server not to be ready.
	Implicit bool

	// Wait bounds how long a request waits for an ID; 0: the generators' default.
	Wait time.Duration

	// Keeper configures the lease. The server sets its Layouts, Generators, Clock,
	// Owner and Logger itself.
	Keeper worker.Options
}

// times is the time-based scheme of a server.
type times struct {
	source  *issuer.Times
	keeper  *worker.Keeper
	workers *issuer.Workers
}

func newTimes(o Snowflake, addr net.Addr, log *slog.Logger) (*times, error) {
	clock := worker.NewClock()
	source, err := issuer.NewTimes(o.Layouts, &issuer.TimesOptions{MaxAhead: o.Keeper.MaxAhead, Wait: o.Wait, Clock: clock})
	if err != nil {
		return nil, err
	}
	k := o.Keeper
	k.Layouts, k.Generators, k.Clock = source.Layouts(), source.Generators(), clock
	k.Owner, k.Logger = owner(addr), log
	keeper, err := worker.NewKeeper(o.Registry, &k)
	if err != nil {
		return nil, err
	}
	return &times{source, keeper, issuer.NewWorkers(o.Registry, keeper, log)}, nil
}

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
