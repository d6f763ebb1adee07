package drivers

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/internal/localfs"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// An ownedRegistry closes its database with itself.
type ownedRegistry struct {
	*sqlstore.Registry
	db *sql.DB
}

func (o *ownedRegistry) Close() error { return errors.Join(o.Registry.Close(), o.db.Close()) }

func parseSQLiteRegistry(rest string) (registrySource, error) {
	path, err := sqlitePath(rest)
	if err != nil {
		return registrySource{}, err
	}
	key, err := keySQLite(rest)
	if err != nil {
		return registrySource{}, err
	}
	return registrySource{
		key:  key,
		open: func(o RegistryOptions) (Registry, error) { return openSQLiteRegistry(path, o) },
		init: func(ctx context.Context) error { return initSQLiteRegistry(ctx, path) },
		exists: func(ctx context.Context) (bool, error) {
			return withSQLite(path, func(db *sql.DB) (bool, error) { return sqlite.ExistsRegistry(ctx, db) })
		},
	}, nil
}

func openSQLiteRegistry(path string, o RegistryOptions) (Registry, error) {
	// A folder that is missing is no malformed URL: it shows at the first call.
	if err := localfs.Check(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	db, err := sqliteDB(path, "rw")
	if err != nil {
		return nil, err
	}
	registry, err := sqlite.NewRegistry(db, &sqlite.Options{Logger: o.Logger, File: path})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ownedRegistry{registry, db}, nil
}

func initSQLiteRegistry(ctx context.Context, path string) error {
	if err := checkFolder(path); err != nil {
		return err
	}
	db, err := sqliteDB(path, "rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	return sqlite.InitRegistry(ctx, db)
}

// withSQLite asks the file at path something; where there is none, or one whose init
// was cut off, the answer is no.
func withSQLite(path string, ask func(*sql.DB) (bool, error)) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Size() == 0:
		return false, nil
	}
	db, err := sqliteDB(path, "rw")
	if err != nil {
		return false, err
	}
	defer db.Close()
	return ask(db)
}

func parseMySQLRegistry(rest string) (registrySource, error) {
	address, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(rest, "@"); at > len(address) { // the password holds a question mark
		address, query, _ = strings.Cut(rest[at:], "?")
		address = rest[:at] + address
	}
	params, err := parseParams(query)
	if err != nil {
		return registrySource{}, err
	}
	terms, err := cutTerms(params, false)
	if err != nil {
		return registrySource{}, err
	}
	if err := onlyParams(params, mysqlParams()...); err != nil {
		return registrySource{}, err
	}
	plain := address + "?" + params.Encode()
	key, err := keyMySQL(plain)
	if err != nil {
		return registrySource{}, err
	}
	return registrySource{
		key:    key,
		terms:  terms,
		open:   func(o RegistryOptions) (Registry, error) { return openMySQLRegistry(plain, o) },
		init:   func(ctx context.Context) error { return initMySQLRegistry(ctx, plain) },
		exists: func(ctx context.Context) (bool, error) { return existsMySQLRegistry(ctx, plain) },
	}, nil
}

func openMySQLRegistry(rest string, o RegistryOptions) (Registry, error) {
	db, err := mysqlDB(rest, o.Logger)
	if err != nil {
		return nil, err
	}
	registry, err := mysql.NewRegistry(db, &mysql.Options{Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ownedRegistry{registry, db}, nil
}

func initMySQLRegistry(ctx context.Context, rest string) error {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return mysql.InitRegistry(ctx, db)
}

func existsMySQLRegistry(ctx context.Context, rest string) (bool, error) {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return mysql.ExistsRegistry(ctx, db)
}
