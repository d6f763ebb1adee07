package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
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

// exact holds for the one row whose column %[1]s is the parameter %[2]s byte for byte. The
// plain equality finds it by the index, but under the column's collation; the second term
// decides.
const exact = `%[1]s = %[2]s AND CAST(CONVERT(%[1]s USING utf8mb4) AS BINARY) = CAST(%[2]s AS BINARY)`

// micros makes the time independent of the session's time zone.
const micros = `CAST(UNIX_TIMESTAMP(update_time) * 1000000 AS SIGNED)`

// advanceFormat makes one packet; its first statement commits it. It does not move a counter that
// cannot move by n, and the packet then reports no changed row instead of a failed statement. The
// guard shows a transaction around the UPDATE, and a read-only server (by now a replica) on which a
// user with enough rights can still write.
const advanceFormat = `UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + $1) WHERE %[1]s AND max_id BETWEEN 0 AND $3;
	SELECT ROW_COUNT(), LAST_INSERT_ID(), @@server_id, %[2]s, %[3]s, max_id, step, ` + micros + `
		FROM (SELECT 1) AS one LEFT JOIN leaf_alloc ON %[1]s`

func advanceStatement(guard, identity string) string {
	return fmt.Sprintf(advanceFormat, fmt.Sprintf(exact, "biz_tag", "$2"), guard, identity)
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
	var rows, server int64
	var end uint64 // LAST_INSERT_ID(): says something only if rows is 1
	var guard, identity string
	var maxID, step, micros sql.Null[int64] // of the row as it stands; null if it is gone
	err = s.QueryRow(s.facts.advance, n, tag, math.MaxInt64-n).Scan(&rows, &end, &server, &guard, &identity, &maxID, &step, &micros)
	if err == nil {
		err = cmp.Or(s.Check(guard), checkRows(rows))
	}
	switch {
	case err != nil:
		return segment.Grant{}, err
	case rows == 0:
		return segment.Grant{}, s.NotAdvanced(tag, n)
	case maxID.Valid && uint64(maxID.V) < end:
		return segment.Grant{}, fmt.Errorf("max_id is %d although %d was just written: it was lowered by hand, "+
			"or the column is too small and clamps", maxID.V, end)
	}
	grant = segment.Grant{Range: leaf.Range{Start: int64(end) - n, End: int64(end)}, Step: max(step.V, 1), Store: identity}
	if !s.facts.agreed {
		grant.Server = strconv.FormatInt(server, 10)
	}
	if uint64(maxID.V) == end && s.Unversioned == nil { // else another call has written the row since
		grant.Version = strconv.FormatInt(micros.V, 10)
	}
	return grant, nil
}

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
