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

	modernc "modernc.org/sqlite"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/internal/localfs"
)

// An owned store closes its database with itself.
type owned struct {
	Store
	db *sql.DB
}

func (o *owned) Close() error { return errors.Join(o.Store.Close(), o.db.Close()) }

func openSQLite(rest string, o *Options) (Store, error) {
	path, err := sqlitePath(rest)
	if err != nil {
		return nil, err
	}
	// A folder that is missing is no malformed URL: it shows at the first call.
	if err := localfs.Check(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	db, err := sqliteDB(path, "rw")
	if err != nil {
		return nil, err
	}
	store, err := sqlite.NewStore(db, &sqlite.Options{Logger: o.Logger, File: path})
	if err != nil {
		return nil, err
	}
	return &owned{store, db}, nil
}

func initSQLite(ctx context.Context, rest string, o InitOptions) error {
	path, err := sqlitePath(rest)
	if err != nil {
		return err
	}
	if err := checkFolder(path); err != nil {
		return err
	}
	db, err := sqliteDB(path, "rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	return sqlite.InitStore(ctx, db, o.Tags)
}

// checkFolder reports why a database cannot be created at path.
func checkFolder(path string) error {
	err := localfs.Check(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: create it, or correct the path", filepath.Dir(path))
	}
	return err
}

func existsSQLite(ctx context.Context, rest string) (bool, error) {
	path, err := sqlitePath(rest)
	if err != nil {
		return false, err
	}
	return withSQLite(path, func(db *sql.DB) (bool, error) { return sqlite.ExistsStore(ctx, db) })
}

// keySQLite returns the absolute path, symbolic links followed. It is the same
// before the file and its folders exist as afterwards.
func keySQLite(rest string) (string, error) {
	path, err := sqlitePath(rest)
	if err != nil {
		return "", err
	}
	return realPath(path, maxLinks), nil
}

// maxLinks is how many dangling links a path may lead through; more are a loop.
const maxLinks = 40

// realPath follows the links of what exists of path, and links to what does not.
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

// sqlitePath returns the absolute path of sqlite:PATH.
func sqlitePath(rest string) (string, error) {
	switch {
	case rest == "" || strings.HasSuffix(rest, "/"):
		return "", fmt.Errorf("%w: it names no file: write sqlite:PATH", leaf.ErrInvalid)
	case strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///"):
		return "", fmt.Errorf("%w: write sqlite:PATH, without slashes before a relative path", leaf.ErrInvalid)
	case strings.HasPrefix(rest, ":"):
		return "", fmt.Errorf("%w: a database in memory keeps no counters: write sqlite:PATH", leaf.ErrInvalid)
	case strings.ContainsRune(rest, 0):
		return "", fmt.Errorf("%w: the path holds a NUL", leaf.ErrInvalid)
	}
	return filepath.Abs(rest)
}

// sqliteConns bounds the files held open: one connection writes, listings use others.
const sqliteConns = 8

// sqliteDB opens the file with what an SQLite store needs; mode is SQLite's: rw
// never creates, rwc does.
func sqliteDB(path, mode string) (*sql.DB, error) {
	dsn := "file://" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + mode +
		"&_pragma=busy_timeout(5000)&_error_rc=1"
	connector, err := modernc.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(sqliteConns)
	return db, nil
}
