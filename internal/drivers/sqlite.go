package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	sqliteio "modernc.org/sqlite"

	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// sqliteConns bounds the files held open: one connection writes, listings use others.
const sqliteConns = 8

// parseSQLite takes the path as it stands.
func parseSQLite(u *target) (*Backend, error) {
	path, err := sqlitePath(u.rest)
	if err != nil {
		return nil, err
	}
	db, err := sqliteDB(path, "rw")
	if err != nil {
		return nil, err
	}
	opts := &sqlite.Options{Logger: u.log, File: path}
	b := sqlDriver{
		newStore: func(db *sql.DB) (*sqlite.Store, error) { return ifLocal(path, db, opts, sqlite.NewStore) },
		initStore: func(ctx context.Context, _ *sql.DB, tags []segment.Tag) error {
			return createSQLite(path, func(db *sql.DB) error { return sqlite.InitStore(ctx, db, tags) })
		},
		existsStore: ifWritten(path, sqlite.ExistsStore),
		newRegistry: func(db *sql.DB) (*sqlite.Registry, error) { return ifLocal(path, db, opts, sqlite.NewRegistry) },
		initRegistry: func(ctx context.Context, _ *sql.DB) error {
			return createSQLite(path, func(db *sql.DB) error { return sqlite.InitRegistry(ctx, db) })
		},
		existsRegistry: ifWritten(path, sqlite.ExistsRegistry),
	}.backend(realPath(path, maxLinks), db)
	db.SetMaxOpenConns(sqliteConns)
	b.Traits.Local = true
	return b, nil
}

// sqlitePath returns the absolute path of sqlite:PATH.
func sqlitePath(rest string) (string, error) {
	switch {
	case rest == "" || strings.HasSuffix(rest, "/"):
		return "", malformed("it names no file")
	case strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///"):
		return "", malformed("the slashes are too many: write a relative path without slashes before it")
	case strings.HasPrefix(rest, ":"):
		return "", malformed("a database in memory keeps no counters")
	case strings.ContainsRune(rest, 0):
		return "", malformed("the path holds a NUL")
	}
	return filepath.Abs(rest)
}

// sqliteDB opens the file with what an SQLite store needs; mode is SQLite's: rw
// never creates, rwc does.
func sqliteDB(path, mode string) (*sql.DB, error) {
	dsn := "file://" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + mode +
		"&_pragma=busy_timeout(5000)&_error_rc=1"
	connector, err := sqliteio.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// ifLocal opens what the file holds if it is on a local file system. A folder that is
// missing shows at the first call.
func ifLocal[T any](path string, db *sql.DB, opts *sqlite.Options, open func(*sql.DB, *sqlite.Options) (T, error)) (none T, err error) {
	if err := worker.CheckLocal(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, err
	}
	return open(db, opts)
}

// createSQLite runs create on a file that may be missing.
func createSQLite(path string, create func(*sql.DB) error) error {
	err := worker.CheckLocal(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no folder %s: create it, or correct the path", filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	db, err := sqliteDB(path, "rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	return create(db)
}

// ifWritten asks the file something; where there is none, or one whose init was cut off,
// the answer is no.
func ifWritten(path string, ask func(context.Context, *sql.DB) (bool, error)) func(context.Context, *sql.DB) (bool, error) {
	return func(ctx context.Context, db *sql.DB) (bool, error) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case info.Size() == 0:
			return false, nil
		}
		return ask(ctx, db)
	}
}

// maxLinks is how many dangling links a path may lead through; more are a loop.
const maxLinks = 40

// realPath follows the links of what exists of path, and links to what does not: the
// result is the same before the file and its folders exist as afterwards.
func realPath(path string, links int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if target, err := os.Readlink(path); err == nil && links > 0 {
		if !filepath.IsAbs(target) {
			target = filepath.Join(realPath(filepath.Dir(path), links), target)
		}
		return realPath(target, links-1)
	}
	folder := filepath.Dir(path)
	if folder == path {
		return path
	}
	return filepath.Join(realPath(folder, links), filepath.Base(path))
}
