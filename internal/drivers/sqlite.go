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

	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// sqliteConns bounds the files held open: one connection writes, listings use others.
const sqliteConns = 8

// parseSQLite takes the path as it stands, but for store_id at its end.
func parseSQLite(u *target) (*Backend, error) {
	const storeID = "?" + paramStoreID + "="
	if i := strings.LastIndex(u.rest, storeID); i >= 0 {
		if u.storeID = u.rest[i+len(storeID):]; u.storeID == "" {
			return nil, invalid("%s is empty", paramStoreID)
		}
		u.rest = u.rest[:i]
	}
	path, err := sqlitePath(u.rest)
	if err != nil {
		return nil, err
	}
	pool, err := sqliteDB(path, "rw")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(sqliteConns)
	db, err := sqlite.New(pool, &sqldb.Options{Logger: u.log, File: path})
	b, err := sqlBackend(realPath(path, maxLinks), pool, db, err)
	if err != nil {
		return nil, err
	}
	b.Traits.Local = true
	store, registry := b.OpenStore, b.OpenRegistry
	b.OpenStore = func() (segment.Store, error) { return ifLocal(path, store) }
	b.OpenRegistry = func(o RegistryOptions) (worker.Registry, error) {
		return ifLocal(path, func() (worker.Registry, error) { return registry(o) })
	}
	b.Tags.Made, b.Workers.Made = ifWritten(path, b.Tags.Made), ifWritten(path, b.Workers.Made)
	b.Tags.Create = createSQLite(path, (*sqldb.DB).Init)
	b.Workers.Create = createSQLite(path, func(db *sqldb.DB, ctx context.Context, _ []segment.Tag) error { return db.InitRegistry(ctx) })
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

// sqliteDB opens the file with the settings of an SQLite store; mode is SQLite's: rw never creates,
// rwc does.
func sqliteDB(path, mode string) (*sql.DB, error) {
	dsn := "file://" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + mode +
		"&_pragma=busy_timeout(5000)&_error_rc=1"
	connector, err := sqliteio.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// ifLocal opens the content of the file if it is on a local file system. A missing folder shows at
// the first call.
func ifLocal[T any](path string, open func() (T, error)) (none T, err error) {
	if err := worker.CheckLocal(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, err
	}
	return open()
}

// createSQLite returns an init of a file that may be missing.
func createSQLite(path string, create func(*sqldb.DB, context.Context, []segment.Tag) error) func(context.Context, []segment.Tag) error {
	return func(ctx context.Context, tags []segment.Tag) error {
		err := worker.CheckLocal(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no folder %s: create it, or correct the path", filepath.Dir(path))
		}
		if err != nil {
			return err
		}
		pool, err := sqliteDB(path, "rwc")
		if err != nil {
			return err
		}
		defer pool.Close()
		db, err := sqlite.New(pool, nil)
		if err != nil {
			return err
		}
		return create(db, ctx, tags)
	}
}

// ifWritten asks the file. For a missing file, or one from an interrupted init, the answer is no.
func ifWritten(path string, ask func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case info.Size() == 0:
			return false, nil
		}
		return ask(ctx)
	}
}

// maxLinks is how many dangling links a path may lead through; more are a loop.
const maxLinks = 40

// realPath follows the links in the existing part of path, and links to missing targets: the result
// is the same before and after the creation of the file and its folders.
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
