package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// New returns the store and the registry in the PostgreSQL, CockroachDB or YugabyteDB
// database db, opened with github.com/jackc/pgx/v5/stdlib.
//
// Db may be the application's own, and so may a pgxpool.Pool by way of
// stdlib.OpenDBFromPool: pgx gives out no connection with a transaction left open.
func New(db *sql.DB, opts *sqldb.Options) (*sqldb.DB, error) {
	if db == nil {
		return nil, fmt.Errorf("open postgres: %w: no database", leaf.ErrInvalid)
	}
	logger := opts.WithDefaults().Logger
	tags := &pool{db: db, table: &allocTable, logger: logger, slots: make(sqlstore.Slots, sqlstore.StoreConns)}
	return sqldb.New("postgres", counters{tags}, &pool{db: db, table: &workerTable, logger: logger}, logger), nil
}

type counters struct{ *pool }

// One statement, which commits by itself. By its own step a tag moves by that of the very row
// version that moves. The lock makes old that version too, so that its max_id shows a trigger that
// changed the new one. The %s are the identity of the store, that of the server, and how it
// commits.
const advance = `UPDATE leaf_alloc
	SET max_id = leaf_alloc.max_id + CASE WHEN $1::bigint > 0 THEN $1::bigint ELSE step END, update_time = now()
	FROM (SELECT biz_tag AS name, max_id AS was, %s AS store FROM leaf_alloc WHERE biz_tag = $2 FOR UPDATE) AS old
	WHERE biz_tag = name AND max_id >= 0 AND ($1::bigint > 0 OR step > 0)
	RETURNING was, max_id, step, ` + micros + `, store, %s, %s`

// Advance moves a counter.
func (c counters) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := c.use(ctx, func(s *session) error {
		return sqlstore.Repeat(s.Context, undone, func() (err error) {
			grant, err = s.advance(tag, n)
			return err
		})
	})
	return grant, err
}

func (s *session) advance(tag string, n int64) (grant segment.Grant, err error) {
	granted := 0
	var odd error // the row is not as it should be
	// By the client library itself: database/sql starts a goroutine for each result.
	err = s.conn.Raw(func(c any) error {
		rows, err := c.(*stdlib.Conn).Conn().Query(s.Context, s.facts.advance, pgx.QueryExecModeExec, n, tag)
		if err != nil {
			return err
		}
		defer rows.Close()
		for ; rows.Next(); granted++ {
			grant, odd = readGrant(rows, n)
		}
		return rows.Err() // the commit may fail after the last row
	})
	switch {
	case err != nil:
		return segment.Grant{}, err
	case granted == 0:
		return segment.Grant{}, s.NotAdvanced(tag, n)
	case granted > 1:
		return segment.Grant{}, fmt.Errorf("%d rows have this biz_tag: delete all but the one with the highest max_id, "+
			"and make biz_tag a unique key", granted)
	}
	return grant, odd
}

// readGrant reads a row of the statement advance.
func readGrant(rows pgx.Rows, n int64) (segment.Grant, error) {
	var was, end, micros int64
	var step *int64
	var store, server, commits string
	if err := rows.Scan(&was, &end, &step, &micros, &store, &server, &commits); err != nil {
		return segment.Grant{}, err
	}
	size, own := n, int64(0)
	if step != nil {
		own = *step
	}
	if n == 0 {
		size = own
	}
	if err := commitFault(commits); err != nil {
		return segment.Grant{}, err
	}
	if end-was != size {
		return segment.Grant{}, fmt.Errorf("max_id moved from %d to %d, not by %d: a trigger changes it: drop the trigger", was, end, size)
	}
	return segment.Grant{Range: leaf.Range{Start: end - size, End: end}, Step: max(own, 1), Server: server, Store: store,
		Version: strconv.FormatInt(micros, 10)}, nil
}

// Return is sent once.
func (c counters) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return c.use(ctx, func(s *session) error {
		return s.GiveBack(tag, last, start, ` AND `+s.facts.server+` = $5`, last.Server)
	})
}
