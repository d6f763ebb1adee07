package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/drivers"
)

type initFlags struct {
	store, workers string
	resize         bool
	retired        string
	timeout        time.Duration
}

func newInit() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init --store URL | --workers URL",
		Short: "Create what a store, or worker IDs, need",
		Long: `Create what a store needs: the file, for SQLite, and the table leaf_alloc, as Java
Leaf has it. No tag is created. What exists already is refused and stays as it is.

With --workers, create what worker IDs for time-based IDs need: the table leaf_worker,
which may stand beside leaf_alloc, or the nodes in ZooKeeper. With both flags, create
both.

A server never does this by itself, so that a mistyped address cannot start the
counters again; except that 'leaf serve' without any store makes its embedded one, and
that layout=leaf makes the nodes that Java Leaf would make.

With --resize, the ticket servers in the URL become the set, which they or some of
them, with those in --retired, are already: every server must answer, nothing is issued
meanwhile, and it may be run again where it was cut off.

Stores:
  sqlite:PATH                          a file on this machine's own disk
  mysql://user:password@host:3306/db   MySQL or MariaDB
  postgres://user:password@host/db     PostgreSQL
  etcd://h1:2379,h2:2379/prefix        etcd
  redis://user:password@host:6379/0    Redis; redis+sentinel://h1,h2/MASTER and
                                       redis+cluster://h1,h2 too; rediss over TLS
  ticket+mysql://u:p@h1/db,u:p@h2/db   Flickr's ticket servers; no worker IDs
Worker registries: the same, and
  zookeeper://h1:2181,h2:2181/chroot   ZooKeeper; the chroot, if any, must exist
  mysql://…?layout=worker_node         uid-generator's table; also sqlite: and postgres:
These need nothing created:
  zookeeper://h1:2181/chroot?layout=leaf&name=N&port=P
                                       Java Leaf's tree, beside Java servers
  static:7                             a number that you see to yourself`,
		Example: `  leaf init --store sqlite:/var/lib/leaf/ids.db
  leaf init --store mysql://root:secret@127.0.0.1:3306/leaf
  leaf tag create order --step 1000 --store mysql://root:secret@127.0.0.1:3306/leaf
  leaf init --workers mysql://root:secret@127.0.0.1:3306/leaf`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().StringVar(&f.store, "store", "", "`URL` of the store")
	cmd.Flags().StringVar(&f.workers, "workers", "", "`URL` of the registry of worker IDs")
	cmd.Flags().BoolVar(&f.resize, "resize", false, "change the number of ticket servers")
	cmd.Flags().StringVar(&f.retired, "retired", "", "`URL` of the ticket servers that are to be none any more; with --resize")
	patienceVar(cmd, &f.timeout, "timeout", 10*time.Second, "how long to wait for it")
	return cmd
}

func (f *initFlags) run(cmd *cobra.Command) error {
	if f.store == "" && f.workers == "" {
		return usage(cmd, errors.New("--store is missing, or --workers: say what to create"))
	}
	if f.store != "" {
		if err := checkStoreFlag(cmd, f.store); err != nil {
			return err
		}
	}
	if f.workers != "" {
		if err := checkWorkersFlag(cmd, f.workers); err != nil {
			return err
		}
	}
	if f.retired != "" && !f.resize || f.resize && f.store == "" {
		return usage(cmd, errors.New("--resize goes with --store, and --retired with --resize"))
	}
	if f.store != "" {
		if err := f.initStore(cmd.Context(), cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if f.workers != "" {
		return f.initWorkers(cmd.Context(), cmd.OutOrStdout())
	}
	return nil
}

func (f *initFlags) initStore(ctx context.Context, w io.Writer) error {
	err := f.create(ctx, "the store", f.store, explainStore, drivers.Exists, func(ctx context.Context, url string) error {
		return drivers.Init(ctx, url, drivers.InitOptions{Resize: f.resize, Retired: f.retired})
	})
	if err != nil {
		return err
	}
	done := "created the store in"
	if f.resize {
		done = "these ticket servers are the set now:"
	}
	_, err = fmt.Fprintf(w, "%s %s\n", done, drivers.Redact(f.store))
	return err
}

func (f *initFlags) initWorkers(ctx context.Context, w io.Writer) error {
	err := f.create(ctx, "the registry of worker IDs", f.workers, explainRegistry, drivers.RegistryExists, drivers.InitRegistry)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "created the registry of worker IDs in %s\n", drivers.Redact(f.workers))
	return err
}

// create runs an init of what is called what, and says what went wrong. What is in its
// way may be less than what exists says is there: then the error tells.
func (f *initFlags) create(ctx context.Context, what, url string, explain func(error, string, time.Duration) error,
	exists func(context.Context, string) (bool, error), init func(context.Context, string) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := init(ctx, url)
	if errors.Is(err, fs.ErrExist) {
		if ok, existsErr := exists(ctx, url); ok && existsErr == nil {
			return fmt.Errorf("%s exists already in %s: nothing to do", what, drivers.Redact(url))
		}
	}
	if err != nil {
		return explain(err, url, time.Since(start))
	}
	return nil
}
