package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/segment"
)

// firstTag is the sample row that Java Leaf's documentation creates.
var firstTag = segment.Tag{Name: "leaf-segment-test", MaxID: 1, Step: 2000, Description: "Test leaf Segment Mode Get Id"}

// A base is what a server stands on: its store, and what it remembers on this
// machine.
type base struct {
	url    string
	memory segment.Memory // nil: nothing is remembered
	dir    *datadir.Dir   // nil if it could not be opened
}

func (b base) close() error {
	if b.dir == nil {
		return nil
	}
	return b.dir.Close()
}

// openBase opens the data directory. Without a store in cfg the store is the
// embedded database, which is created if need be; any other one can do without the
// directory.
func openBase(ctx context.Context, cfg config.Config, log *slog.Logger) (base, error) {
	b := base{url: cfg.Store}
	embedded := b.url == ""
	if embedded {
		b.url = "sqlite:" + filepath.Join(cfg.Data, "leaf.db")
	}
	err := b.remember(cfg.Data, log)
	switch {
	case err != nil && !embedded && unusable(err):
		log.Warn("no data directory: a store that loses writes while this server is down will not be noticed", "data", cfg.Data, "err", err)
		err = nil
	case err != nil && unusable(err):
		err = hinted(err, "name another data directory with --data DIR")
	case err != nil:
	case embedded:
		err = createEmbedded(ctx, b.url, log)
	}
	if err != nil {
		return base{}, errors.Join(err, b.close())
	}
	return b, nil
}

// unusable tells a directory that cannot be written from one that must not be used,
// because a newer version has.
func unusable(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok || errors.Is(err, errors.ErrUnsupported)
}

// remember opens the data directory and what it knows of the store.
func (b *base) remember(path string, log *slog.Logger) error {
	key, err := drivers.Key(b.url)
	if err != nil {
		return err
	}
	if b.dir, err = datadir.Open(path); err != nil {
		return err
	}
	marks, err := b.dir.Marks(key, log)
	if err != nil {
		return err
	}
	b.memory = marks
	return nil
}

// createEmbedded makes the embedded database unless it is there. Of several servers
// that start at once, one makes it.
func createEmbedded(ctx context.Context, url string, log *slog.Logger) error {
	exists, err := drivers.Exists(ctx, url)
	if err == nil && !exists {
		err = drivers.Init(ctx, url, drivers.InitOptions{Tags: []segment.Tag{firstTag}})
	}
	switch {
	case exists || errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		log.Info("created an embedded database, because no store is configured and there was none", "store", url, "tag", firstTag.Name)
		return nil
	}
	return fmt.Errorf("create the embedded database: %w", err)
}
