package drivers

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"

	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A database keeps both tags and worker IDs.
type database[S segment.Store, R worker.Registry] interface {
	io.Closer
	Store() S
	Registry() R
}

// newBackend returns the backend in a newly opened database.
func newBackend[S segment.Store, R worker.Registry](db database[S, R], err error) (*Backend, error) {
	if err != nil {
		return nil, err
	}
	return &Backend{DB: db, TagStore: db.Store(), WorkerRegistry: db.Registry()}, nil
}

// A sqlDB is the tables in an SQL database, and the pool of connections to it.
type sqlDB struct {
	*sqldb.DB
	pool *sql.DB
}

func newSQL(pool *sql.DB, open func(*sql.DB, *sqldb.Options) (*sqldb.DB, error), o *sqldb.Options) (sqlDB, error) {
	db, err := open(pool, o)
	if err != nil {
		return sqlDB{}, errors.Join(err, pool.Close())
	}
	return sqlDB{db, pool}, nil
}

// Identities also asks a replica.
func (d sqlDB) Identities(ctx context.Context) (map[string]string, error) {
	var identity string
	if err := d.pool.QueryRowContext(ctx, `SELECT identity FROM leaf_store WHERE one = 1`).Scan(&identity); err != nil {
		return nil, d.pool.PingContext(ctx) // the server answers, but has no identity or hides it from this user
	}
	return map[string]string{"store": identity}, nil
}

func (d sqlDB) Close() error { return errors.Join(d.DB.Close(), d.pool.Close()) }

// newPool returns a pool of connections to a server, for a store and a registry together.
func newPool(c sqldriver.Connector) *sql.DB {
	const size = sqlstore.StoreConns + 4 // for the registry
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}
