package drivers

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"

	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// newPool returns a pool of connections to a server, for a store and a registry together.
func newPool(c sqldriver.Connector) *sql.DB {
	const size = sqlstore.StoreConns + 4 // for the registry
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// askDatabases returns the hosts of a URL with several; open opens a pool to the one with that
// number alone.
func askDatabases(names []string, open func(i int) (*sql.DB, error)) []backend.Host {
	if len(names) < 2 {
		return nil
	}
	var all []backend.Host
	for i, name := range names {
		all = append(all, backend.Host{Name: name, Identities: func(ctx context.Context) (map[string]string, error) {
			pool, err := open(i)
			if err != nil {
				return nil, err
			}
			defer pool.Close()
			var identity string
			if err := pool.QueryRowContext(ctx, `SELECT identity FROM leaf_store WHERE one = 1`).Scan(&identity); err != nil {
				return nil, pool.PingContext(ctx) // the server answers, but has no identity or hides it from this user
			}
			return map[string]string{"store": identity}, nil
		}})
	}
	return all
}

// sqlBackend returns the backend in one database.
func sqlBackend(key string, pool *sql.DB, db *sqldb.DB, err error) (*Backend, error) {
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	b := dbBackend(key, db)
	b.OnClose = func() error { return errors.Join(db.Close(), pool.Close()) }
	return b, nil
}
