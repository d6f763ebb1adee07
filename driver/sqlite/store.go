package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// New returns the store and the registry in the SQLite database db. It does not touch the database:
// problems show at the first call. Store and registry each keep one connection of db in use, and
// the store opens another for a listing unless db is limited to one: a db for both must allow
// three. From now on db keeps no idle connection, so that no old one leads to a replaced file.
// Close the DB before db. Use one DB per file and process: two of them do not share commits.
//
// Db should be for Leaf alone: the application's idle connections would close too.
func New(db *sql.DB, opts *sqldb.Options) (*sqldb.DB, error) {
	if db == nil {
		return nil, fmt.Errorf("open sqlite: %w: no database", leaf.ErrInvalid)
	}
	o := opts.WithDefaults()
	return sqldb.New("sqlite", counters{newWriter(db, allocTable, o)}, newWriter(db, workerTable, o), o.Logger), nil
}

// now is the time as the tables keep it, in Unix milliseconds.
const now = `CAST(1000 * unixepoch('subsec') AS INTEGER)`

var dialect = sqlstore.Dialect{
	Bind:  func(query string, args []any) (string, []any) { return strings.ReplaceAll(query, "$", "?"), args },
	Equal: `%s = %s`, IfAbsent: ` ON CONFLICT (%s) DO NOTHING`,
	Now: now, Touch: `, update_time = ` + now, Later: `max(` + now + `, update_time) + 1`, Micros: `1000 * update_time`,
	Joined:      `group_concat(biz_tag || char(9) || ifnull(step, ''), char(10))`,
	Description: `COALESCE(description, '')`, Guard: `''`,
	OptionTable:  `CREATE TABLE IF NOT EXISTS leaf_option (name TEXT NOT NULL PRIMARY KEY COLLATE BINARY, options TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	StrictTable:  `CREATE TABLE IF NOT EXISTS leaf_strict (name TEXT NOT NULL PRIMARY KEY COLLATE BINARY, max_id INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
	DeletedTable: `CREATE TABLE IF NOT EXISTS leaf_deleted (name TEXT NOT NULL PRIMARY KEY COLLATE BINARY, max_id INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
	StoreColumns: `(one INTEGER NOT NULL PRIMARY KEY, identity TEXT NOT NULL) STRICT`,
	CountTables:  `SELECT count(*) FROM sqlite_schema WHERE name = $1`,
}

// counters has every call but a listing run by the writer.
type counters struct{ *writer }

// A counter at or near the end of its range is left alone: no statement raises an
// error for one call that would have to fail its whole batch.
var advance = `UPDATE leaf_alloc
	SET max_id = max_id + iif(?1 > 0, ?1, step), update_time = ` + now + `
	WHERE biz_tag = ?2 AND iif(?1 > 0, ?1, step) > 0
		AND max_id BETWEEN 0 AND 9223372036854775807 - iif(?1 > 0, ?1, step)
	RETURNING max_id, step, 1000 * update_time, ` + dialect.ReadIdentity()

// Advance moves a counter. With n = 0 the step is that of the very row and statement that moved it.
func (c counters) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := c.do(ctx, func(s *session) error {
		var end, micros int64
		var step sql.Null[int64]
		var identity string
		err := s.advance.QueryRowContext(s.Context, n, tag).Scan(&end, &step, &micros, &identity)
		if errors.Is(err, sql.ErrNoRows) {
			return s.NotAdvanced(tag, n)
		}
		if err != nil {
			return err
		}
		size := n
		if n == 0 {
			size = step.V
		}
		grant = segment.Grant{Range: leaf.Range{Start: end - size, End: end}, Step: max(step.V, 1),
			Store: identity, Version: strconv.FormatInt(micros, 10)}
		return nil
	})
	if err != nil {
		return segment.Grant{}, err // not grant: the writer may still be filling it
	}
	return grant, nil
}

// Return is part of a batch like all that writes.
func (c counters) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return c.do(ctx, func(s *session) error { return s.GiveBack(tag, last, start, "") })
}

// Do runs a listing on a connection of its own, so that it does not hold up an
// Advance. A database with a single connection suffices: then the writer reads.
func (c counters) Do(ctx context.Context, do func(*sqlstore.Session) error) error {
	if c.db.Stats().MaxOpenConnections == 1 {
		return c.writer.Do(ctx, do)
	}
	conn, err := connect(ctx, c.db)
	if err != nil {
		return err
	}
	defer sqlstore.Discard(conn)
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = ON"); err != nil {
		return err
	}
	if err := checkFormat(ctx, conn, c.table); err != nil {
		return err
	}
	return do(&sqlstore.Session{Context: ctx, On: conn, Dialect: &dialect})
}
