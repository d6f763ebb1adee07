package drivers

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"

	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// newPool returns a pool of connections to a server, for a store and a registry together.
func newPool(c sqldriver.Connector) *sql.DB {
	const size = sqlstore.StoreConns + 4 // for the registry
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// A sqlDriver is what the packages of SQL databases have in common.
type sqlDriver struct {
	newStore       func(*sql.DB) (*sqlstore.Store, error)
	initStore      func(context.Context, *sql.DB, []segment.Tag) error
	existsStore    func(context.Context, *sql.DB) (bool, error)
	newRegistry    func(*sql.DB) (*sqlstore.Registry, error)
	initRegistry   func(context.Context, *sql.DB) error
	existsRegistry func(context.Context, *sql.DB) (bool, error)
}

// backend returns the backend in one database.
func (d sqlDriver) backend(key string, db *sql.DB) *Backend {
	return &Backend{
		Key:      key,
		store:    func() (segment.Store, error) { return d.newStore(db) },
		registry: func(RegistryOptions) (worker.Registry, error) { return d.newRegistry(db) },
		Tags: Part{
			init:   func(ctx context.Context, tags []segment.Tag) error { return d.initStore(ctx, db, tags) },
			exists: func(ctx context.Context) (bool, error) { return d.existsStore(ctx, db) },
		},
		Workers: Part{
			init:   func(ctx context.Context, _ []segment.Tag) error { return d.initRegistry(ctx, db) },
			exists: func(ctx context.Context) (bool, error) { return d.existsRegistry(ctx, db) },
		},
		close: db.Close,
	}
}
