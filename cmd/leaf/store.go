package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/worker"
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

// checkWorkersFlag reports a --workers that names no registry of worker IDs, as
// checkStoreFlag does for stores.
func checkWorkersFlag(cmd *cobra.Command, url string) error {
	err := drivers.CheckRegistry(url)
	if errors.Is(err, leaf.ErrInvalid) {
		return &cliError{err: fmt.Errorf("--workers: %w", err), code: exitUsage, hint: "'leaf init --help' lists the URLs of worker registries"}
	}
	return err
}

// explainStore adds to an error of the store at url, which took that long, what to do
// about it.
func explainStore(err error, url string, took time.Duration) error {
	switch {
	case err == nil || isHinted(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return noAnswer("the store", err, url, took)
	case errors.Is(err, drivers.ErrNotCreated):
		return hinted(err, "leaf init --store %s", shellWord(drivers.Redact(url)))
	}
	return err
}

// explainRegistry is explainStore for a registry of worker IDs.
func explainRegistry(err error, url string, took time.Duration) error {
	switch {
	case err == nil || isHinted(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return noAnswer("the worker registry", err, url, took)
	case errors.Is(err, worker.ErrNotCreated):
		return hinted(err, "leaf init --workers %s", shellWord(drivers.Redact(url)))
	}
	return err
}

func noAnswer(who string, err error, url string, took time.Duration) error {
	text := fmt.Sprintf("no answer from %s %s within %s", who, drivers.Redact(url), took.Round(100*time.Millisecond))
	return hinted(&plainError{text, err}, "check its address and that it runs, or wait longer with --timeout")
}
