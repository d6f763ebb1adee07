package drivers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	sqliteio "modernc.org/sqlite"

	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/segment"
)

// sqliteConns bounds the files held open: one connection writes, listings use others.
const sqliteConns = 8

// openSQLite takes the path as it stands, but for store_id at its end.
func openSQLite(u *target) (*Backend, error) {
	if i := strings.LastIndex(u.rest, "?"+paramStoreID+"="); i >= 0 {
		_, identity, _ := strings.Cut(u.rest[i:], "=")
		u.rest, u.params = u.rest[:i], url.Values{paramStoreID: {identity}}
	}
	u.checkPath()
	path, err := filepath.Abs(u.rest)
	if err = cmp.Or(u.err, err); err != nil {
		return nil, err
	}
	err = filelock.CheckLocal(path)
	if _, ok := errors.AsType[syscall.Errno](err); err != nil && !ok { // an unreadable path shows at the first call
		return nil, err
	}
	db, err := sqliteDB(path, "rw", &sqldb.Options{Logger: u.log, File: path})
	u.key, u.traits.Local = realPath(path, maxLinks), true
	return newBackend(sqliteFile{db, path}, err)
}

// checkPath refuses paths that are probably meant otherwise.
func (u *target) checkPath() {
	switch {
	case u.rest == "" || strings.HasSuffix(u.rest, "/"):
		u.malformed("it names no file")
	case strings.HasPrefix(u.rest, "//") && !strings.HasPrefix(u.rest, "///"):
		u.malformed("the slashes are too many: write a relative path without slashes before it")
	case strings.HasPrefix(u.rest, ":"):
		u.malformed("a database in memory keeps no counters")
	case strings.ContainsRune(u.rest, 0):
		u.malformed("the path holds a NUL")
	}
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

// A sqliteFile is a file that Init creates.
type sqliteFile struct {
	sqlDB
	path string
}

func (f sqliteFile) Init(ctx context.Context, tags []segment.Tag) error {
	return f.create(func(db sqlDB) error { return db.Init(ctx, tags) })
}

func (f sqliteFile) InitRegistry(ctx context.Context) error {
	return f.create(func(db sqlDB) error { return db.InitRegistry(ctx) })
}

func (f sqliteFile) create(init func(sqlDB) error) error {
	if _, err := os.Stat(filepath.Dir(f.path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: create it, or correct the path", filepath.Dir(f.path))
	}
	db, err := sqliteDB(f.path, "rwc", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return init(db)
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
