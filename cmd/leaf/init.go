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

Stores:
  sqlite:PATH                          a file on this machine's own disk
  mysql://user:password@host:3306/db   MySQL or MariaDB
Worker registries: the same, and
  zookeeper://h1:2181,h2:2181/chroot   ZooKeeper; the chroot, if any, must exist
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
	return f.create(ctx, w, "the table leaf_alloc", f.store, explainStore, func(ctx context.Context) error {
		return drivers.Init(ctx, f.store, drivers.InitOptions{})
	})
}

func (f *initFlags) initWorkers(ctx context.Context, w io.Writer) error {
	return f.create(ctx, w, "the registry of worker IDs", f.workers, explainRegistry, func(ctx context.Context) error {
		return drivers.InitRegistry(ctx, f.workers)
	})
}

// create runs an init of what is called what, and tells how that went.
func (f *initFlags) create(ctx context.Context, w io.Writer, what, url string,
	explain func(error, string, time.Duration) error, init func(context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := init(ctx)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already in %s: nothing to do", what, drivers.Redact(url))
	}
	if err != nil {
		return explain(err, url, time.Since(start))
	}
	_, err = fmt.Fprintf(w, "created %s in %s\n", what, drivers.Redact(url))
	return err
}
