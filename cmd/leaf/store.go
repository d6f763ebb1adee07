package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
)

// checkStoreFlag reports a --store that names no store, as the wrong use of cmd that it
// is. It contacts nothing.
func checkStoreFlag(cmd *cobra.Command, url string) error {
	store, err := drivers.Open(url, nil)
	if errors.Is(err, leaf.ErrInvalid) {
		return &cliError{err: fmt.Errorf("--store: %w", err), code: exitUsage, hint: "'leaf init --help' lists the URLs of stores"}
	}
	if err != nil {
		return err
	}
	return store.Close()
}

// explainStore adds to an error of the store at url, which took that long, what to do
// about it.
func explainStore(err error, url string, took time.Duration) error {
	switch {
	case err == nil || isHinted(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		text := fmt.Sprintf("no answer from the store %s within %s", drivers.Redact(url), took.Round(100*time.Millisecond))
		return hinted(&plainError{text, err}, "check its address and that it runs, or wait longer with --timeout")
	case errors.Is(err, drivers.ErrNotCreated):
		return hinted(err, "leaf init --store %s", shellWord(drivers.Redact(url)))
	}
	return err
}
