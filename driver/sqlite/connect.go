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

// errElsewhere says that a database is used together with another log than the one
// beside it.
var errElsewhere = errors.New("it is used with another log")

// connect returns a connection to the file of db that shares the log and the locks of
// all other users of the file.
func connect(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	inUse := func(err error) bool { return errors.Is(err, errElsewhere) }
	if err := sqlstore.Repeat(ctx, inUse, func() error { return checkUsers(ctx, db) }); err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds())); err != nil {
		sqlstore.Discard(conn)
		return nil, err
	}
	return conn, nil
}

// checkUsers reports that the file of db is used with another log and other locks than
// those beside it. If these are missing, no process may use the file: one that does came
// by another name, or the files were removed and it is about to notice. SQLite locks
// the file itself, whatever its name, while a process has it open. An exclusive lock
// needs neither log nor shared memory, so that the attempt leaves none behind.
func checkUsers(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer sqlstore.Discard(conn)
	path, err := mainPath(ctx, conn)
	if path == "" || err != nil {
		return err
	}
	if err := checkNames(path); err != nil {
		return err
	}
	if haveCompanions(path) {
		return nil
	}
	_, err = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK")
	if codeOf(err) == codeBusy {
		return fmt.Errorf("the database file %s: %w than %[1]s-wal, under another name or because that file or %[1]s-shm was removed: "+
			"stop every server that uses it, and have all of them name the same path", path, errElsewhere)
	}
	return nil // what else is wrong, such as a file that is read-only, shows when it is used
}

func haveCompanions(path string) bool {
	for _, suffix := range companions {
		if _, err := os.Stat(path + suffix); err != nil {
			return false
		}
	}
	return true
}
