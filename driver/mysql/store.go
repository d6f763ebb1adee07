package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// New returns the store and the registry in the MySQL or MariaDB database db, opened with
// [OpenDB] or with github.com/go-sql-driver/mysql as the package documentation says.
//
// Db must be for stores and registries alone, not the application's pool. An Advance
// commits by itself. On a connection on which other code left a transaction open it would
// become part of that, and be undone with it, and MySQL cannot be asked.
func New(db *sql.DB, opts *sqldb.Options) (*sqldb.DB, error) {
	if db == nil {
		return nil, fmt.Errorf("open mysql: %w: no database", leaf.ErrInvalid)
	}
	logger := opts.WithDefaults().Logger
	tags := &pool{db: db, table: &allocTable, logger: logger, slots: make(sqlstore.Slots, sqlstore.StoreConns)}
	return sqldb.New("mysql", counters{tags}, &pool{db: db, table: &workerTable, logger: logger}, logger), nil
}

type counters struct{ *pool }

// exact holds for the one row whose column %[1]s is the parameter %[2]s byte for byte. The plain
// equality finds it by the index, but under the column's collation; the second term decides.
const exact = `%[1]s = %[2]s AND CAST(CONVERT(%[1]s USING utf8mb4) AS BINARY) = CAST(%[2]s AS BINARY)`

// micros makes the time independent of the session's time zone.
const micros = `CAST(UNIX_TIMESTAMP(update_time) * 1000000 AS SIGNED)`

// advanceFormat makes one packet; its first statement commits it. It does not move a counter that
// cannot move by n, and the packet then reports no changed row instead of a failed statement. The
// guard shows a transaction around the UPDATE, and a read-only server (by now a replica) on which a
// user with enough rights can still write. The answer is one short text: the server describes, and
// the library reads, each column at a price. A missing row has dashes.
const advanceFormat = `UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?) WHERE %[1]s AND max_id BETWEEN 0 AND ?;
	SELECT CONCAT_WS(' ', ROW_COUNT(), LAST_INSERT_ID(), @@server_id, COALESCE(max_id, '-'), COALESCE(step, '-'),
		COALESCE(` + micros + `, '-'), %[2]s, %[3]s) AS a
		FROM (SELECT 1) AS one LEFT JOIN leaf_alloc ON %[1]s`

func advanceStatement(guard, identity string) string {
	return fmt.Sprintf(advanceFormat, fmt.Sprintf(exact, "biz_tag", "?"), guard, identity)
}

// Advance moves a counter.
func (c counters) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := sqlstore.Repeat(ctx, undone, func() error {
		return c.use(ctx, func(s *session) (err error) {
			grant, err = s.advance(tag, n)
			return err
		})
	})
	return grant, err
}

// advance computes the range from the n of the statement, so a change of the step between two
// packets does no harm.
func (s *session) advance(tag string, n int64) (grant segment.Grant, err error) {
	if n == 0 {
		if n, err = s.Step(tag); err != nil {
			return segment.Grant{}, err
		}
	}
	text, err := mysqlconn.Value(s.Context, s.conn, s.facts.advance, n, tag, tag, math.MaxInt64-n, tag, tag)
	if err != nil {
		return segment.Grant{}, err
	}
	var a advanced
	if err := a.parse(text); err != nil {
		return segment.Grant{}, fmt.Errorf("the server's answer is %q: %w", text, err)
	}
	err = cmp.Or(s.Check(a.guard), checkRows(a.rows))
	switch {
	case err != nil:
		return segment.Grant{}, err
	case a.rows == 0:
		return segment.Grant{}, s.NotAdvanced(tag, n)
	case a.found && uint64(a.maxID) < a.end:
		return segment.Grant{}, fmt.Errorf("max_id is %d although %d was just written: it was lowered by hand, "+
			"or the column is too small and clamps", a.maxID, a.end)
	}
	grant = segment.Grant{Range: leaf.Range{Start: int64(a.end) - n, End: int64(a.end)}, Step: max(a.step, 1), Store: a.identity}
	if !s.facts.agreed {
		grant.Server = a.server
	}
	if uint64(a.maxID) == a.end && s.Unversioned == nil { // else another call has written the row since
		grant.Version = a.micros
	}
	return grant, nil
}

// An advanced is the answer to advanceFormat.
type advanced struct {
	rows   int64
	end    uint64 // LAST_INSERT_ID(): says something only if rows is 1
	server string

	found  bool // the row is still there
	maxID  int64
	step   int64 // 0: none
	micros string

	guard, identity string
}

func (a *advanced) parse(text string) (err error) {
	fields := strings.SplitN(text, " ", 7)
	if len(fields) < 7 {
		return errors.New("it lacks a part")
	}
	last := strings.LastIndexByte(fields[6], ' ')
	if last < 0 {
		return errors.New("it lacks the identity")
	}
	a.server, a.micros, a.guard, a.identity = fields[2], fields[5], fields[6][:last], fields[6][last+1:]
	a.found = fields[3] != missing
	a.rows, err = strconv.ParseInt(fields[0], 10, 64)
	if err == nil {
		a.end, err = strconv.ParseUint(fields[1], 10, 64)
	}
	if err == nil && a.found {
		a.maxID, err = strconv.ParseInt(fields[3], 10, 64)
	}
	if err == nil && fields[4] != missing {
		a.step, err = strconv.ParseInt(fields[4], 10, 64)
	}
	return err
}

// missing means NULL.
const missing = "-"

// checkRows reports that ROW_COUNT(), and so LAST_INSERT_ID(), do not speak of an UPDATE of at
// most one row.
func checkRows(rows int64) error {
	switch {
	case rows < 0:
		return fmt.Errorf("the server does not say how many rows the UPDATE changed (ROW_COUNT() is %d): "+
			"something between here and the server splits or rewrites the packet", rows)
	case rows > 1:
		return fmt.Errorf("%d rows have this biz_tag: delete all but the one with the highest max_id, and make biz_tag a unique key", rows)
	}
	return nil
}

// Return is sent once. The server sets update_time at each write of the row, in Java's table to the
// second. That reveals an operator's or a backup's change; its number reveals a new primary.
func (c counters) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return c.write(ctx, last.Server, func(s *sqlstore.Session) error { return s.GiveBack(tag, last, start, "") })
}
