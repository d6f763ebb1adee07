package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// lockWait is how long one administrative call waits for another.
const lockWait = 20 * time.Second

// An adminConn is one server during an administrative call: a connection, kept from first
// to last, that holds the server's lock for such calls.
type adminConn struct {
	*member
	conn *sql.Conn
	facts
}

// lockAll runs do with a connection to every member; all must be up. It takes the locks in the
// order of the names, which is the same for every caller. A lock ends with its connection, and all
// statements for a server use that connection. So two such calls never mix, even if one loses a
// connection.
func lockAll(ctx context.Context, members []*member, do func([]*adminConn) error) error {
	conns := make([]*adminConn, len(members))
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b *member) int { return cmp.Compare(a.Name, b.Name) }) {
		conn, err := m.DB.Conn(ctx)
		if err != nil {
			return m.wrapErr(err)
		}
		defer sqlstore.Discard(conn) // which unlocks the server
		a := &adminConn{member: m, conn: conn}
		if err := a.lock(ctx); err != nil {
			return m.wrapErr(err)
		}
		conns[slices.Index(members, m)] = a
	}
	return do(conns)
}

func (a *adminConn) lock(ctx context.Context) error {
	var got sql.Null[int]
	err := a.conn.QueryRowContext(ctx, `SELECT GET_LOCK(LEFT(CONCAT('leaf_ticket.', DATABASE()), 64), ?)`, lockWait.Seconds()).Scan(&got)
	switch {
	case err != nil:
		return err
	case got.V != 1:
		return errors.New("another administrative call is under way on the server: try again later")
	}
	if _, err := a.conn.ExecContext(ctx, setSession); err != nil {
		return err
	}
	return a.checkServer(ctx, a.conn)
}

func (a *adminConn) exec(ctx context.Context, query string, args ...any) error {
	_, err := a.conn.ExecContext(ctx, query, args...)
	return a.wrapErr(err)
}

// both commits two statements together.
func (a *adminConn) both(ctx context.Context, first, second string, args ...any) error {
	err := a.exec(ctx, "START TRANSACTION; "+first+"; "+second+"; COMMIT", args...)
	if err != nil {
		sqlstore.Discard(a.conn) // so that the server undoes an open transaction
	}
	return err
}

// mark draws a ticket and returns one past it, or 0 for an unused table. The remaining row of the
// tickets does not show the highest one: after two concurrent draws it may be the lower.
func (a *adminConn) mark(ctx context.Context, table string) (int64, error) {
	var name, definition string
	if err := a.conn.QueryRowContext(ctx, "SHOW CREATE TABLE `"+table+"`").Scan(&name, &definition); err != nil {
		return 0, err
	}
	if !strings.Contains(definition, "AUTO_INCREMENT=") {
		return 0, nil
	}
	var last uint64
	err := a.conn.QueryRowContext(ctx, "REPLACE INTO `"+table+"` (stub) VALUES ('a'); SELECT LAST_INSERT_ID()").Scan(&last)
	return int64(min(last, math.MaxInt64-1)) + 1, err
}

// liftTable moves all later tickets of a table to floor or above. Two concurrent lifts, or a lift
// and a draw, sometimes end in a deadlock: the server undoes one of them.
func liftTable(ctx context.Context, conn *sql.Conn, table string, floor int64) error {
	if floor <= 1 { // where a fresh table begins; an id of 0 means the next one
		return nil
	}
	undone := func(err error) bool { return mysqlconn.IsNumber(err, mysqlconn.Deadlock) }
	return sqlstore.Repeat(ctx, undone, func() error {
		_, err := conn.ExecContext(ctx, fmt.Sprintf("REPLACE INTO `%[1]s` (id, stub) SELECT ?, 'a' FROM (SELECT 1) AS one "+
			"WHERE NOT EXISTS (SELECT 1 FROM `%[1]s` AS t WHERE t.id >= ?)", table), floor-1, floor-1)
		return err
	})
}

// place has a server draw a tag's IDs from MaxID on, in its share and generation. A counter is only
// ever raised.
func (a *adminConn) place(ctx context.Context, tag segment.Tag) error {
	var next int64
	if a.Stride > 0 {
		next = a.align(tag.MaxID)
	} else {
		table := a.table(tag.Name)
		if a.TablePerTag {
			if err := a.exec(ctx, fmt.Sprintf(ticketTable, table)); err != nil {
				return err
			}
		}
		if err := liftTable(ctx, a.conn, table, tag.MaxID); err != nil {
			return a.wrapErr(err)
		}
	}
	return a.exec(ctx, `INSERT INTO leaf_ticket_tag (name, generation, next_id, step, description) VALUES (?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE generation = VALUES(generation), next_id = GREATEST(next_id, VALUES(next_id)),
			step = VALUES(step), description = VALUES(description)`,
		[]byte(tag.Name), a.generation, next, tag.Step, tag.Options.Description())
}

// keptEnd returns the end of a deleted tag on the server; 0 without one.
func (a *adminConn) keptEnd(ctx context.Context, name string) (end int64, err error) {
	err = a.conn.QueryRowContext(ctx, `SELECT COALESCE(MAX(next_id), 0) FROM leaf_ticket_deleted WHERE name = ?`, []byte(name)).Scan(&end)
	if mysqlconn.IsNumber(err, mysqlconn.NoTable) {
		err = nil
	}
	return end, err
}
