package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// companions end the names of the files that SQLite keeps next to a database: the log, which has
// the latest commits, and the shared memory, which has the writers' locks.
var companions = [2]string{"-wal", "-shm"}

// A dbFile is the file behind a session. The system lets a process continue to write to a replaced
// or removed file; its counters then exist twice.
type dbFile struct {
	path       string         // for people, and where it is looked for
	info       fs.FileInfo    // of the open file
	real       string         // path without symbolic links: SQLite puts its files next to it
	companions [2]fs.FileInfo // of the files named by companions
}

// findFile inspects the file of a connection in WAL mode; given is the user's name for it, or
// empty.
func findFile(ctx context.Context, conn *sql.Conn, given string) (dbFile, error) {
	real, err := mainPath(ctx, conn)
	if err != nil {
		return dbFile{}, err
	}
	if real == "" {
		return dbFile{}, fmt.Errorf("%w: a database without a file keeps no counters", leaf.ErrUnsupported)
	}
	// SQLite opens its companions with the first transaction.
	if _, err := conn.ExecContext(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil {
		return dbFile{}, err
	}
	f := dbFile{path: cmp.Or(given, real), real: real}
	if f.info, err = os.Stat(real); err != nil {
		return dbFile{}, err
	}
	for i, suffix := range companions {
		if f.companions[i], err = os.Stat(real + suffix); err != nil {
			return dbFile{}, err
		}
	}
	return f, f.checkPath()
}

// mainPath returns the path of a connection's file, as SQLite uses it, and does not touch the file.
func mainPath(ctx context.Context, conn *sql.Conn) (string, error) {
	rows, err := conn.QueryContext(ctx, "PRAGMA database_list")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var number int
		var name string
		var path sql.Null[string]
		if err := rows.Scan(&number, &name, &path); err != nil || name == "main" {
			return path.V, err
		}
	}
	return "", rows.Err()
}

// check reports, after a commit, that other processes may not see the written data.
func (f *dbFile) check() error {
	return cmp.Or(f.checkPath(), checkNames(f.real), f.checkCompanions())
}

// checkPath reports that the path no longer leads to this file.
func (f *dbFile) checkPath() error {
	if err := sameFile(f.path, f.info); err != nil {
		return sqlstore.Mark(fmt.Errorf("the database file %s was moved, removed or replaced while it was open: stop every server that uses it "+
			"before it is touched, and after restoring a backup raise every counter: %w", f.path, err), segment.ErrStoreDamaged)
	}
	return nil
}

// checkCompanions reports a missing companion. Companions stay the same as long as any process has
// the database open.
func (f *dbFile) checkCompanions() error {
	for i, suffix := range companions {
		if err := sameFile(f.real+suffix, f.companions[i]); err != nil {
			return fmt.Errorf("the file %s was removed or replaced while the database was open: leave the files next to a database alone "+
				"while a server uses it: %w", f.real+suffix, err)
		}
	}
	return nil
}

// sameFile reports that path leads no longer to the file that it led to.
func sameFile(path string, was fs.FileInfo) error {
	info, err := os.Stat(path)
	if err == nil && !os.SameFile(info, was) {
		err = errReplaced
	}
	return err
}

// A location is what the system tells about where a file is.
type location struct {
	names         uint64 // hard links; 0: not known
	mount, folder uint64 // the mounts that the file and its folder are on; equal where they are not known

	written, changed time.Time // the last write, and the last change of any kind; zero: not known
}

// checkNames reports that other processes may use the file under another name, with another log and
// other locks.
func checkNames(path string) error {
	p, err := locate(path)
	if err != nil {
		return err
	}
	return p.check(path)
}

func (p location) check(path string) error {
	switch {
	case p.names > 1:
		return fmt.Errorf("the database file %s has %d names (hard links), and the latest commits are in a file next to each name: "+
			"remove the other names; to share the database, mount or link its folder", path, p.names)
	case p.mount != p.folder:
		return fmt.Errorf("the database file %s is mounted by itself, and the latest commits are in a file next to it, which other mounts do not have: "+
			"mount the folder that it is in, everywhere", path)
	}
	return nil
}

// settleTime is how long a database has to be in its place before it is opened. mv moves a folder's
// files one after the other, the database before its log: the first server to open it would begin
// another log, which the old one then replaces, with all commits in it. And the log may be in use for
// the file that was here before, by a server that notices after checkInterval.
var settleTime = 2 * checkInterval

// checkSettled reports that a database came to its name just now.
func checkSettled(path string) error {
	p, err := locate(path)
	if err == nil && p.unsettled(time.Now()) {
		err = fmt.Errorf("the database file %s: %w", path, errUnsettled)
	}
	return err
}

// unsettled reports a rename, or a copy that kept the time of the last write, less than settleTime
// ago. A write, such as the last one of a server that stopped, changes both times.
func (p location) unsettled(now time.Time) bool {
	age := now.Sub(p.changed)
	return p.changed.After(p.written) && age >= 0 && age < settleTime
}
