package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/filewatch"
	"github.com/leaf-id/leaf/internal/footprint"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/sdnotify"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/telemetry"
)

const serveLong = `Start a server. It serves HTTP, Java Leaf's own API included, and gRPC on one port, and
the Redis protocol on another. With --grpc it has a third port for gRPC alone, where a
call costs a third of the processor time.

Without any configuration it listens on 127.0.0.1:8080, and on 127.0.0.1:6380 for the
Redis protocol, and keeps its counters in an SQLite database in ./leaf-data, which the
first start creates, with the tag leaf-segment-test in it. Any other store must exist:
see 'leaf init'.

IDs made of the time (scheme snowflake) need a worker ID that no other server has at
the same time. It comes from the store's database, or from where --workers says. The
embedded database is for this machine only: with an address that other machines reach
that scheme stays off until --workers is given.

Settings come from --config (YAML, or a leaf.properties of Java Leaf), which the
environment overrules, which the flags overrule. 'leaf config example' prints all of
them. With a leaf.properties the server listens on all interfaces, port 8080, without
the Redis protocol, unless told otherwise.

SIGINT or SIGTERM stops the server cleanly: requests in flight are answered and
unused IDs go back to the store. A second one ends it at once. SIGHUP has the
configuration, the tokens file and the certificates read again, as does a change of one
of these files; what needs a restart to change is logged and stays as it is.

Environment: LEAF_CONFIG, LEAF_LISTEN, LEAF_DATA, LEAF_STORE, LEAF_STORE_FILE (a file
that holds the store's URL), LEAF_WORKERS, LEAF_WORKERS_FILE, LEAF_LOG_LEVEL,
LEAF_SEGMENT_MAX_STOCK, and so on for every key.`

func newServe() *cobra.Command {
	var file string
	flags := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start a server",
		Long:  serveLong,
		Example: `  leaf serve
  leaf serve --listen :8080 --data /var/lib/leaf
  leaf serve --store mysql://root:secret@db:3306/leaf
  leaf serve --listen :8080 --workers zookeeper://zk1:2181,zk2:2181
  leaf serve --config leaf.properties`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			src := config.Source{File: file, Environ: os.Environ(), Flags: map[string]string{}, Java: javaURLs}
			for key, value := range flags {
				if cmd.Flags().Changed(strings.ReplaceAll(key, "_", "-")) {
					src.Flags[key] = *value
				}
			}
			for _, u := range []urlFlag{storeFlag(), workersFlag()} {
				if u.url = src.Flags[u.name]; u.url != "" && u.url != clusterScheme {
					if err := u.checkFlag(); err != nil {
						return err
					}
				}
			}
			return serve(cmd, src)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE`: YAML, or a leaf.properties")
	flags["listen"] = cmd.Flags().String("listen", "", "`ADDR` to listen on, HOST:PORT (default 127.0.0.1:8080)")
	for _, f := range server.FrontEnds[1:] {
		flags[f.Key] = cmd.Flags().String(f.Key, "", fmt.Sprintf("`ADDR` for %s, HOST:PORT or off (default %s)", f.Title, f.Default))
	}
	flags["data"] = cmd.Flags().String("data", "", "`DIR` for what the server remembers (default ./leaf-data)")
	flags["store"] = cmd.Flags().String("store", "", "`URL` of the store (default: an SQLite database in the data directory)")
	flags["store_file"] = cmd.Flags().String("store-file", "", "`FILE` that holds the URL of the store")
	flags["workers"] = cmd.Flags().String("workers", "", "`URL` of the registry of worker IDs (default: the store's database)")
	flags["cluster"] = cmd.Flags().String("cluster", "", "`PEERS` of this server's cluster, HOST:PORT with commas; they keep the counters, without a store")
	flags["cluster_address"] = cmd.Flags().String("cluster-address", "", "`ADDR` at which peers reach this server, to join them (default: the one of PEERS that this machine has)")
	flags["cluster_listen"] = cmd.Flags().String("cluster-listen", "", "`ADDR` to listen on for peers (default: this server's among them)")
	flags["cluster_ca"] = cmd.Flags().String("cluster-ca", "", "`FILE` of the authority that signs the peers' certificates")
	flags["cluster_cert"] = cmd.Flags().String("cluster-cert", "", "`FILE` of this server's certificate for its peers")
	flags["cluster_key"] = cmd.Flags().String("cluster-key", "", "`FILE` of that certificate's key")
	flags["cluster_quota"] = cmd.Flags().String("cluster-quota", "", "`SIZE` that this server's copy of the store may have (default 2GiB)")
	flags["workers_file"] = cmd.Flags().String("workers-file", "", "`FILE` that holds the URL of the registry")
	return cmd
}

func serve(cmd *cobra.Command, src config.Source) error {
	files := filewatch.New(src.Path()) // before it is read, so that no later change is lost
	cfg, notices, err := config.Load(src)
	if err != nil {
		cli.Say(cmd, "note", notices...)
		return explainConfig(err)
	}
	level := new(slog.LevelVar)
	level.Set(cfg.LogLevel())
	log := newLogger(cmd.ErrOrStderr(), cfg, level)
	drivers.LogTo(log)
	telemetry.LogTracesTo(log)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else a log without a reader ends the process
	hangups := make(chan os.Signal, 1)                      // from now on SIGHUP does not end the process
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	ctx, stop := stoppable(cmd.Context(), log)
	defer stop()
	for _, n := range notices {
		log.Warn(n)
	}
	notify, err := sdnotify.FromEnv(os.Getenv)
	if err != nil {
		log.Warn("systemd is not told how this server is doing", "err", err)
	}
	opts := server.Options{Config: cfg, ConfigFile: src.Path(), Files: files, Version: cli.ThisBuild().String(), Logger: log, Level: level, Notify: notify}
	opts.Load = func() (config.Config, error) {
		cfg, _, err := config.Load(src)
		return withCluster(cfg), err
	}
	return runServer(ctx, opts, hangups)
}

// stoppable returns a context that the first SIGINT or SIGTERM ends. The second one
// finds the default handling back in place, which ends the process.
func stoppable(parent context.Context, log *slog.Logger) (context.Context, func()) {
	signals, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancelCause(context.WithoutCancel(parent))
	quiet := context.AfterFunc(signals, func() {
		stop()
		log.Info("stopping; a second signal ends the process at once", "cause", context.Cause(signals))
		end(context.Cause(signals)) // last, so that nothing is logged about the stop before its cause
	})
	return ctx, func() { quiet(); stop(); end(nil) }
}

// reloadOn calls reload, which logs its own errors, for each signal. The returned function ends that,
// and does not wait for a reload, which may hang on a file.
func reloadOn(hangups <-chan os.Signal, reload func() error) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-hangups:
				_ = reload()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func newLogger(w io.Writer, cfg config.Config, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == config.FormatJSON || cfg.Log.Format == config.FormatAuto && !cli.IsTerminal(w) {
		opts.ReplaceAttr = durationText
		return slog.New(hint.Handler(slog.NewJSONHandler(w, opts)))
	}
	return slog.New(hint.Handler(slog.NewTextHandler(w, opts)))
}

// durationText writes a duration as 1.5s: without it JSON has bare nanoseconds.
func durationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// startTime is the time after which a server needs little of what its start needed.
const startTime = 5 * time.Second

// runServer opens the backends of the configuration and serves until ctx ends.
func runServer(ctx context.Context, opts server.Options, hangups <-chan os.Signal) (err error) {
	if err := joinCluster(ctx, opts.Config, opts.Logger); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it ever served
		}
		return err
	}
	opts.Config = withCluster(opts.Config)
	cfg, log := opts.Config, opts.Logger
	if cfg.NeedsStore() {
		url := cmp.Or(cfg.Store, "sqlite:"+filepath.Join(cfg.Data, "leaf.db"))
		if opts.Store, err = drivers.Open(url, log); err != nil {
			return err
		}
	}
	if cfg.Workers != "" {
		if opts.Workers, err = drivers.Open(cfg.Workers, log); err != nil {
			return err
		}
	}
	srv, err := server.New(ctx, opts)
	if err != nil {
		return explainListen(err)
	}
	defer reloadOn(hangups, srv.Reload)()
	defer time.AfterFunc(startTime, footprint.Shrink).Stop()
	return explainListen(srv.Run(ctx))
}

func explainListen(err error) error {
	flag, off, all := "--listen HOST:PORT", "", "--listen :8080"
	if port, ok := errors.AsType[*server.PortError](err); ok {
		key := "--" + port.FrontEnd.Key
		flag, off, all = key+" HOST:PORT", fmt.Sprintf(", or turn %s off with %s off", port.FrontEnd.Title, key), key+" :PORT"
	}
	if errors.Is(err, cluster.ErrListen) {
		flag, off, all = "--cluster-listen HOST:PORT", "", "--cluster-listen :PORT"
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return cli.Hinted(err, "another program listens there; choose another address with %s%s", flag, off)
	case isListenError(err) && errors.Is(err, syscall.EACCES):
		return cli.Hinted(err, "ports below 1024 need privileges; choose another one with %s", flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return cli.Hinted(err, "this machine has no such address; %s takes all that it has", all)
	}
	return err
}

// isListenError reports whether err came from listening on an address, not from a file.
func isListenError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "listen"
}
