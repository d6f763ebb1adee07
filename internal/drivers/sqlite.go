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

// openSQLite takes the path as it stands, but for store_id at its end.
func openSQLite(u *target) (*Backend, error) {
	if i := strings.LastIndex(u.rest, "?"+paramStoreID+"="); i >= 0 {
		_, u.storeID, _ = strings.Cut(u.rest[i:], "=")
		if u.rest = u.rest[:i]; u.storeID == "" {
			return nil, invalid("%s is empty", paramStoreID)
		}
	}
	path, err := sqlitePath(u.rest)
	if err != nil {
		return nil, err
	}
	db, err := sqliteDB(path, "rw", &sqldb.Options{Logger: u.log, File: path})
	return &Backend{Key: realPath(path, maxLinks), Traits: Traits{Local: true}, DB: sqliteFile{db, path}}, err
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

// sqliteDB opens the file; mode is SQLite's: rw never creates, rwc does.
func sqliteDB(path, mode string, o *sqldb.Options) (sqlDB, error) {
	dsn := "file://" + (&url.URL{Path: path}).EscapedPath() + "?mode=" + mode +
		"&_pragma=busy_timeout(5000)&_error_rc=1"
	connector, err := sqliteio.NewConnector(dsn)
	if err != nil {
		return sqlDB{}, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(sqliteConns)
	return newSQL(pool, sqlite.New, o)
}

// A sqliteFile is a file that may be missing, and must be on a local file system.
type sqliteFile struct {
	sqlDB
	path string
}

func (f sqliteFile) Store() (segment.Store, error) {
	if err := f.checkLocal(); err != nil {
		return nil, err
	}
	return f.sqlDB.Store()
}

func (f sqliteFile) Registry(o *RegistryOptions) (worker.Registry, error) {
	if err := f.checkLocal(); err != nil {
		return nil, err
	}
	return f.sqlDB.Registry(o)
}

// checkLocal refuses a remote file system. A missing folder shows at the first call.
func (f sqliteFile) checkLocal() error {
	if err := worker.CheckLocal(f.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f sqliteFile) Init(ctx context.Context, tags []segment.Tag) error {
	return f.create(func(db sqlDB) error { return db.Init(ctx, tags) })
}

func (f sqliteFile) InitRegistry(ctx context.Context) error {
	return f.create(func(db sqlDB) error { return db.InitRegistry(ctx) })
}

// create runs an init on the file, which it creates if necessary.
func (f sqliteFile) create(init func(sqlDB) error) error {
	err := worker.CheckLocal(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no folder %s: create it, or correct the path", filepath.Dir(f.path))
	}
	if err != nil {
		return err
	}
	db, err := sqliteDB(f.path, "rwc", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return init(db)
}

func (f sqliteFile) Exists(ctx context.Context) (bool, error) {
	if ok, err := f.written(); !ok {
		return false, err
	}
	return f.sqlDB.Exists(ctx)
}

func (f sqliteFile) RegistryExists(ctx context.Context) (bool, error) {
	if ok, err := f.written(); !ok {
		return false, err
	}
	return f.sqlDB.RegistryExists(ctx)
}

// written reports whether the file exists and is not that of an interrupted init.
func (f sqliteFile) written() (bool, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return info.Size() > 0, nil
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
