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
	path string
	info fs.FileInfo
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
	f := dbFile{path: cmp.Or(given, path.V), info: info}
	return f, f.check()
}

// check reports that the path leads to another file by now, or to none.
func (f dbFile) check() error {
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
