package sqlite

import (
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

// errUnsettled: the database came to its name just now, and its log may follow.
var errUnsettled = errors.New("it came to its name less than a second ago, without its log")

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
		err = checkNames(path)
	}
	if err == nil && (path == "" || haveCompanions(path)) {
		return conn, nil
	}
	if err == nil {
		err = checkSettled(path) // first, as the check of users removes a log that comes meanwhile
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

// checkUsers reports a process that has the file open without its log and shared memory: it came by
// another name, or somebody removed those files and it is about to notice. SQLite locks the file
// itself, under any name, while a process has it open. An exclusive lock needs neither log nor shared
// memory, so the attempt leaves neither behind: SQLite removes the log by its name at the end.
func checkUsers(ctx context.Context, conn *sql.Conn, path string) error {
	_, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK")
	if codeOf(err) == codeBusy {
		return fmt.Errorf("the database file %s: %w than %[1]s-wal, under another name or because that file or %[1]s-shm was removed: "+
			"stop every server that uses it, and have all of them name the same path", path, errElsewhere)
	}
	return nil // other problems, such as a read-only file, show at the first use
}

func haveCompanions(path string) bool {
	for _, suffix := range companions {
		if _, err := os.Stat(path + suffix); err != nil {
			return false
		}
	}
	return true
}
