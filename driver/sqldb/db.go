package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// A DB is Leaf's tables in one database: a [Store], a [Registry] or both. Opening it neither
// creates tables, see [DB.Init] and [DB.InitRegistry], nor connects. Problems of the server, a
// table or a session show at the first call, and each further call checks again.
type DB struct {
	store    *Store
	registry *Registry
}

// New returns the DB of a driver, whose name is for errors. Users call the New of a driver instead.
func New(name string, tags sqlstore.Counters, workers sqlstore.Workers, logger *slog.Logger) *DB {
	return &DB{
		store:    &Store{handle: handle{db: tags, name: name + " store"}, db: tags, logger: logger},
		registry: &Registry{handle: handle{db: workers, name: name + " registry"}, db: workers},
	}
}

// Store returns the store of tags. Its calls fail, wrapping [segment.ErrNotCreated], until
// it was created.
func (d *DB) Store() *Store { return d.store }

// Registry returns the registry of workers. Its calls fail, wrapping worker.ErrNotCreated,
// until it was created.
func (d *DB) Registry() *Registry { return d.registry }

// Init creates the table of tags, with these tags in it. If the table exists, the error wraps
// [io/fs.ErrExist].
func (d *DB) Init(ctx context.Context, tags []segment.Tag) error {
	var later []segment.Tag // their options need a further table
	first := slices.DeleteFunc(slices.Clone(tags), func(tag segment.Tag) bool {
		if tag.Options.Others() != nil {
			later = append(later, tag)
			return true
		}
		return false
	})
	if err := segment.CheckTags(tags); err != nil {
		return err
	}
	if err := d.store.create(ctx, first); err != nil {
		return err
	}
	for _, tag := range later {
		if err := d.store.Create(ctx, tag); err != nil {
			return fmt.Errorf("the table was created, not all of its tags were: %w", err)
		}
	}
	return nil
}

// Ensure creates the table of tags if it is missing, and those of tags that it lacks. What
// exists stays as it is. Several processes may call it at once.
func (d *DB) Ensure(ctx context.Context, tags []segment.Tag) error {
	if err := d.Init(ctx, tags); !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, tag := range tags {
		if err := d.store.Create(ctx, tag); err != nil && !errors.Is(err, leaf.ErrTagExists) {
			return err
		}
	}
	return nil
}

// EnsureRegistry creates the table of workers if it is missing.
func (d *DB) EnsureRegistry(ctx context.Context) error {
	if err := d.InitRegistry(ctx); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// InitRegistry creates the table of workers. If the table exists, the error wraps [io/fs.ErrExist].
func (d *DB) InitRegistry(ctx context.Context) error { return d.registry.create(ctx, nil) }

// Close ends the use of the database, which stays open: it is the caller's. Calls that
// wait fail with an error that wraps [leaf.ErrClosed], as later calls do.
func (d *DB) Close() error { return errors.Join(d.store.Close(), d.registry.Close()) }

func (h *handle) create(ctx context.Context, tags []segment.Tag) error {
	return act(ctx, h, "init "+h.name, func() error {
		if err := segment.CheckTags(tags); err != nil {
			return err
		}
		return h.db.Create(ctx, tags)
	})
}

// Exists reports whether the table is there.
func (h *handle) Exists(ctx context.Context) (bool, error) {
	return call(ctx, h, "look for the "+h.name, func() (bool, error) { return h.db.Exists(ctx) })
}
