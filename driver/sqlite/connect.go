package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leaf-id/leaf/internal/sqlstore"
)

// busyTimeout is how long a transaction waits for other processes.
const busyTimeout = 5 * time.Second

// errElsewhere: another process uses the database with another log than the one next to it.
var errElsewhere = errors.New("it is used with another log")

// errUnsettled: the database came to its name just now, or its rights or links changed. Its log may
// follow, and a server that uses another file of that name may not have noticed.
var errUnsettled = errors.New("it came to its name less than two seconds ago")

// connect returns a connection to the file of db that shares the log and the locks of
// all other users of the file.
func connect(ctx context.Context, db *sql.DB) (conn *sql.Conn, err error) {
	notYet := func(err error) bool { return errors.Is(err, errElsewhere) || errors.Is(err, errUnsettled) }
	err = sqlstore.Repeat(ctx, notYet, func() (err error) {
		conn, err = checkedConn(ctx, db)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds())); err != nil {
		sqlstore.Discard(conn)
		return nil, err
	}
	return conn, nil
}

// checkedConn returns a connection that has not touched the log yet. It fails if a process uses the
// file of db with another log and other locks than those next to it.
func checkedConn(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	path, err := mainPath(ctx, conn)
	if err == nil && path != "" {
		err = cmp.Or(checkNames(path), checkSettled(path), checkLog(path))
	}
	if err == nil && (path == "" || countCompanions(path) == len(companions)) {
		return conn, nil
	}
	if err == nil {
		err = checkUsers(ctx, conn, path)
	}
	sqlstore.Discard(conn)
	if err != nil {
		return nil, err
	}
	return db.Conn(ctx)
}

// checkLog reports a log without a database. SQLite would remove it, and it may be in use.
func checkLog(path string) error {
	if countCompanions(path) == 0 { // looked for first: SQLite makes them for a database that is not empty
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return nil // a missing file shows at the first use
	}
	return fmt.Errorf("the database file %s is empty, and %[1]s-wal or %[1]s-shm belongs to another one: stop every server, "+
		"and move these files to their database or away", path)
}

// checkUsers reports a process that has the file open without its log and shared memory: it came by
// another name, or somebody removed those files and it is about to notice. SQLite locks the file
// itself, under any name, while a process has it open. An exclusive lock needs no shared memory. The
// log that it may make goes when the connection closes, by its name.
func checkUsers(ctx context.Context, conn *sql.Conn, path string) error {
	_, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK")
	if codeOf(err) == codeBusy {
		return fmt.Errorf("the database file %s: %w than %[1]s-wal, under another name or because that file or %[1]s-shm was removed: "+
			"stop every server that uses it, and have all of them name the same path", path, errElsewhere)
	}
	return nil // other problems, such as a read-only file, show at the first use
}

// countCompanions counts the files next to the database.
func countCompanions(path string) (n int) {
	for _, suffix := range companions {
		if _, err := os.Stat(path + suffix); err == nil {
			n++
		}
	}
	return n
}
