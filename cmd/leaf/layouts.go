package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/worker"
)

// compareLayouts compares the layouts of cfg with those in its data directory. It returns notes on
// differences that a server would refuse, and a line on layouts that it did not compare.
func compareLayouts(ctx context.Context, cfg config.Config) (notes []string, rest string) {
	embedded := filepath.Join(cfg.Data, "leaf.db")
	url := cmp.Or(cfg.Workers, cfg.Store, "sqlite:"+embedded)
	b, err := drivers.Open(url, nil)
	if err != nil {
		return []string{fmt.Sprintf("the layouts were not compared with those in use: %v", err)}, ""
	}
	defer b.Close()
	layouts := server.ServedLayouts(cfg, b)
	if len(layouts) == 0 || b.Workers.Unfit != nil {
		return nil, ""
	}
	own := cfg.Workers == "" && cfg.Store == ""
	records, err := remembered(cfg.Data, b)
	if _, missing := os.Stat(embedded); own && missing == nil && err == nil {
		var more []worker.Record
		more, err = listRecords(ctx, b)
		records = append(records, more...)
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("not all that the data directory %s remembers of layouts was compared: %v", cfg.Data, err))
	}
	known := make(map[int64]worker.Record, len(records))
	for i, r := range records { // a worker ID can be in several files
		known[int64(i)] = r
	}
	if err := worker.Inspect().CheckLayouts(layouts, known); err != nil {
		notes = append(notes, fmt.Sprintf("a server issues no time-based IDs with this configuration: %v", err))
	}
	if !own {
		rest = fmt.Sprintf("layouts were compared with the data directory %s alone, not with %s\n", cfg.Data, b.Name)
	}
	return notes, rest
}

// remembered returns the records of the registry in b that files of the data directory hold.
func remembered(dir string, b *backend.Backend) (records []worker.Record, failed error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		kind, number, _ := strings.Cut(f.Name(), "-")
		id, bad := strconv.ParseInt(number, 10, 64)
		if bad != nil {
			continue
		}
		path := filepath.Join(dir, f.Name())
		var r worker.Record
		registry, readErr := b.Key, error(nil)
		switch {
		case kind == "worker":
			r, registry, readErr = worker.Inspect().ReadState(path)
		case kind == "static" && b.Traits.Assigned && number == b.Key:
			r, readErr = worker.Inspect().ReadStatic(path, id)
		}
		if readErr == nil && registry == b.Key && len(r.Layouts) > 0 {
			records = append(records, r)
		}
		err = errors.Join(err, readErr)
	}
	return records, err
}

func listRecords(ctx context.Context, b *backend.Backend) ([]worker.Record, error) {
	registry, err := b.Registry(&backend.RegistryOptions{Observe: true})
	if err == nil {
		var records []worker.Record
		if records, err = registry.List(ctx); err == nil || errors.Is(err, worker.ErrNotCreated) {
			return records, nil
		}
	}
	return nil, err
}
