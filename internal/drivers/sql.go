package drivers

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"

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

// sqlBackend returns the backend in one database.
func sqlBackend(key string, pool *sql.DB, db *sqlstore.DB, err error) (*Backend, error) {
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	b := dbBackend(key, db)
	b.OnClose = func() error { return errors.Join(db.Close(), pool.Close()) }
	return b, nil
}
