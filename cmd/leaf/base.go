package main

import (
	"cmp"
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
	store  *drivers.Backend    // nil: none is needed
	memory *segment.FileMemory // nil: nothing is remembered of the counters
	dir    *datadir.Dir        // nil if it could not be opened
}

func (b base) close() (err error) {
	if b.store != nil {
		err = b.store.Close()
	}
	if b.dir != nil {
		err = errors.Join(err, b.dir.Close())
	}
	return err
}

// ownWorkers reports whether the worker IDs come from the store's database.
func ownWorkers(cfg config.Config) bool {
	return (cfg.Snowflake.Enable || cfg.ServesUID()) && cfg.Workers == ""
}

// openBase opens the data directory. Without a store in cfg the store is the
// embedded database, which is created if need be; any other one can do without the
// directory.
func openBase(ctx context.Context, cfg config.Config, log *slog.Logger) (base, error) {
	b := base{}
	needed := cfg.Segment.Enable || ownWorkers(cfg)
	embedded := needed && cfg.Store == ""
	var err error
	if needed { // a URL that is malformed leaves nothing behind
		url := cmp.Or(cfg.Store, "sqlite:"+filepath.Join(cfg.Data, "leaf.db"))
		if b.store, err = drivers.Open(url, &drivers.Options{Logger: log}); err != nil {
			return base{}, err
		}
	}
	err = b.remember(cfg.Data, log)
	switch {
	case err != nil && !embedded && unusable(err):
		log.Warn("no data directory: a store that loses writes while this server is down will not be noticed, and every start takes another worker ID", "data", cfg.Data, "err", err)
		err = nil
	case err != nil && unusable(err):
		err = hinted(err, "name another data directory with --data DIR")
	case err != nil:
	case embedded:
		err = b.createEmbedded(ctx, log)
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

// remember opens the data directory and what it knows of the store, if there is one.
func (b *base) remember(path string, log *slog.Logger) (err error) {
	if b.dir, err = datadir.Open(path); err != nil || b.store == nil {
		return err
	}
	b.memory, err = b.dir.Memory(b.store.Key, log)
	return err
}

// createEmbedded makes the embedded database unless it is there. Of several servers
// that start at once, one makes it.
func (b *base) createEmbedded(ctx context.Context, log *slog.Logger) error {
	made, err := makeMissing(ctx, &b.store.Tags, firstTag)
	if err != nil {
		return fmt.Errorf("create the embedded database: %w", err)
	}
	if made {
		log.Info("created an embedded database, because no store is configured and there was none", "store", b.store.Name, "tag", firstTag.Name)
		if n := b.memory.Tags(); n > 0 {
			log.Warn("this server remembers an embedded database that is gone: tags of that one are missing, "+
				"and the counters of those it remembers will be lifted above the IDs it knows of", "store", b.store.Name, "remembered", n)
		}
	}
	added, err := makeMissing(ctx, &b.store.Workers)
	if err != nil {
		return fmt.Errorf("add the table of worker IDs to the embedded database: %w", err)
	}
	if added && !made {
		log.Info("added the table of worker IDs to the embedded database", "store", b.store.Name)
	}
	return nil
}

// makeMissing makes what does not exist, and reports whether it did. Somebody else may
// be faster.
func makeMissing(ctx context.Context, part *drivers.Part, tags ...segment.Tag) (made bool, err error) {
	ok, err := part.Exists(ctx)
	if err != nil || ok {
		return false, err
	}
	err = part.Init(ctx, tags...)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}
