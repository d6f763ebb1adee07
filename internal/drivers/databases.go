package drivers

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// hostsAlone returns the hosts of a URL with several; open opens the one with that number by itself.
func hostsAlone[D interface {
	Identities(context.Context) (map[string]string, error)
	io.Closer
}](names []string, open func(i int) (D, error)) (all []backend.Host) {
	if len(names) < 2 {
		return nil
	}
	for i, name := range names {
		all = append(all, backend.Host{Name: name, Identities: func(ctx context.Context) (map[string]string, error) {
			db, err := open(i)
			if err != nil {
				return nil, err
			}
			defer db.Close()
			return db.Identities(ctx)
		}})
	}
	return all
}

// kvBackend returns the backend in a key-value store. open opens it with all hosts, or with one.
func kvBackend(key string, hosts []string, open func(hosts ...string) (*kv.DB, error)) (*Backend, error) {
	db, err := open(hosts...)
	if err != nil {
		return nil, err
	}
	return &Backend{Key: key, DB: db, TagStore: db.Store(), WorkerRegistry: db.Registry(),
		Hosts: hostsAlone(hosts, func(i int) (*kv.DB, error) { return open(hosts[i]) })}, nil
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

func (d sqlDB) backend(key string) *Backend {
	return &Backend{Key: key, DB: d, TagStore: d.Store(), WorkerRegistry: d.Registry()}
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

// A sqlHost is one of several hosts by itself, perhaps a replica.
type sqlHost struct{ *sql.DB }

func (h sqlHost) Identities(ctx context.Context) (map[string]string, error) {
	var identity string
	if err := h.QueryRowContext(ctx, `SELECT identity FROM leaf_store WHERE one = 1`).Scan(&identity); err != nil {
		return nil, h.PingContext(ctx) // the server answers, but has no identity or hides it from this user
	}
	return map[string]string{"store": identity}, nil
}
