package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/drivers"
)

func newInit() *cobra.Command {
	var store string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "init --store URL",
		Short: "Create what a store needs",
		Long: `Create what a store needs: the file, for SQLite, and the table leaf_alloc, as Java
Leaf has it. No tag is created. What exists already is refused and stays as it is.

A server never does this by itself, so that a mistyped address cannot start the
counters again; except that 'leaf serve' without any store makes its embedded one.

Stores:
  sqlite:PATH                          a file on this machine's own disk
  mysql://user:password@host:3306/db   MySQL or MariaDB`,
		Example: `  leaf init --store sqlite:/var/lib/leaf/ids.db
  leaf init --store mysql://root:secret@127.0.0.1:3306/leaf
  leaf tag create order --step 1000 --store mysql://root:secret@127.0.0.1:3306/leaf`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if store == "" {
				return usage(cmd, fmt.Errorf("--store is missing: say which store to create"))
			}
			if err := checkStoreFlag(cmd, store); err != nil {
				return err
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			err := drivers.Init(ctx, store, drivers.InitOptions{})
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("the table leaf_alloc exists already in %s: nothing to do", drivers.Redact(store))
			}
			if err != nil {
				return explainStore(err, store, time.Since(start))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "created the table leaf_alloc in %s\n", drivers.Redact(store))
			return err
		},
	}
	cmd.Flags().StringVar(&store, "store", "", "URL of the store (required)")
	patienceVar(cmd, &timeout, "timeout", 10*time.Second, "how long to wait for the store")
	return cmd
}
