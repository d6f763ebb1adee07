package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/internal/mysqlconn"
)

// undone reports that the server undid a transaction in favour of others: a deadlock, or a failed
// certification. Of the errors of a commit only that last one counts, because others leave the
// outcome open. The store does not repeat an expired wait for a lock: its holder will likely hold
// it again.
func undone(err error) bool {
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	return ok && (e.Number == mysqlconn.Deadlock || e.Number == mysqlconn.NotCertified ||
		e.Number == mysqlconn.CommitFailed && strings.HasPrefix(e.Message, "Got error 149 "))
}

// serverFailed reports whether an error says that a server is of no use for others either.
func serverFailed(err error) bool {
	return mysqlconn.WritesNothing(err) || errors.Is(err, errNotReady) || mysqlconn.IsNumber(err, mysqlconn.NotReady, mysqlconn.Shutdown) ||
		errors.Is(err, gomysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded)
}

// explain adds a remedy to an error.
func explain(err error, t *table) error {
	if _, ok := errors.AsType[failures.List](err); ok {
		return err // it says so for each server
	}
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	switch {
	case !ok:
	case e.Number == mysqlconn.TableExists:
		return t.Exists(err)
	case e.Number == mysqlconn.NoTable && strings.Contains(e.Message, t.Name): // a trigger's table may be missing too
		return fmt.Errorf("%w: %w", t.Absent("the database has no table "+t.Name), err)
	case e.Number == mysqlconn.NoColumn:
		return t.LacksColumn(err)
	case t.meanings[e.Number] != nil:
		return fmt.Errorf("%w: %w", t.meanings[e.Number], err)
	}
	return mysqlconn.Advise(err, nil)
}
