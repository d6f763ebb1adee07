package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"

	"github.com/leaf-id/leaf"
)

// A dbFile is the file behind a session. The system lets a process go on writing to
// a file that was replaced or removed; its counters then exist twice.
type dbFile struct {
	path string      // for people, and where it is looked for
	info fs.FileInfo // of the file that is open
	wal  string      // path of the write-ahead log beside it
	log  fs.FileInfo // of the log; nil until there is one
}

// findFile asks SQLite for the file; given is what its user calls it, or empty.
func findFile(ctx context.Context, conn *sql.Conn, given string) (dbFile, error) {
	var path sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	if err != nil {
		return dbFile{}, err
	}
	if path.V == "" {
		return dbFile{}, fmt.Errorf("%w: a database without a file keeps no counters", leaf.ErrUnsupported)
	}
	info, err := os.Stat(path.V)
	if err != nil {
		return dbFile{}, err
	}
	f := dbFile{path: cmp.Or(given, path.V), info: info, wal: path.V + "-wal"}
	return f, f.checkPath()
}

// check reports, after a commit, that what was written may not be what others read.
func (f *dbFile) check() error { return cmp.Or(f.checkPath(), f.checkLog()) }

// checkPath reports that the path leads to another file by now, or to none.
func (f *dbFile) checkPath() error {
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.info) {
		return nil
	}
	if err == nil {
		err = errReplaced
	}
	return fmt.Errorf("the database file %s was moved, removed or replaced while it was open: stop every server that uses it "+
		"before it is touched, and after restoring a backup raise every counter (leaf tag raise): %w", f.path, err)
}

// checkLog reports that the log is gone, which stays the same as long as any process
// has the database open.
func (f *dbFile) checkLog() error {
	info, err := os.Stat(f.wal)
	if err == nil && f.log == nil {
		f.log = info
	}
	if err == nil && os.SameFile(info, f.log) {
		return nil
	}
	return fmt.Errorf("the database's log %s was removed while it was open: leave the files beside a database alone "+
		"while a server uses it: %w", f.wal, cmp.Or(err, errReplaced))
}
