package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// NewStore returns a store in the SQLite database db, which [InitStore] has
// prepared. It does not touch the database: what is wrong with it shows at the
// first call. The store keeps one connection of db, and opens another for a listing
// unless db is limited to one. No connection stays idle in db from then on, lest a
// file that was replaced be used through an old one. Close the store before db. Use
// one store per file and process: two of them do not share commits.
func NewStore(db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("open sqlite store: %w: no database", leaf.ErrInvalid)
	}
	db.SetMaxIdleConns(0)
	w := newWriter(db, opts.file(), allocTable(), opts.logger())
	return sqlstore.NewStore(&sqlite{db: db, writer: w}, w.logger), nil
}

// sqlite has every call but a listing run by its writer.
type sqlite struct {
	db     *sql.DB
	writer *writer
}

// A counter at or near the end of its range is left alone: no statement raises an
// error for one call that would have to fail its whole batch.
const sqliteAdvance = `UPDATE leaf_alloc
	SET max_id = max_id + iif(?1 > 0, ?1, step), update_time = ?2
	WHERE biz_tag = ?3 AND iif(?1 > 0, ?1, step) > 0
		AND max_id BETWEEN 0 AND 9223372036854775807 - iif(?1 > 0, ?1, step)
	RETURNING max_id, step`

func (d *sqlite) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := d.writer.do(ctx, func(s *session) error {
		var end int64
		var step sql.Null[int64]
		stamp := now()
		err := s.hot.QueryRowContext(s.ctx, n, stamp, tag).Scan(&end, &step)
		if errors.Is(err, sql.ErrNoRows) {
			return whyNot(s, tag, n)
		}
		if err != nil {
			return err
		}
		// With n = 0 the step is that of the very row and statement that moved.
		if n == 0 {
			n = step.V
		}
		grant = segment.Grant{Range: leaf.Range{Start: end - n, End: end}, Step: max(step.V, 1), Version: strconv.FormatInt(stamp, 10)}
		return nil
	})
	if err != nil {
		return segment.Grant{}, err // not grant: the writer may still be filling it
	}
	return grant, nil
}

// whyNot says why an advance of tag by n found no row.
func whyNot(s *session, tag string, n int64) error {
	r, err := s.load(tag)
	if err != nil {
		return err
	}
	if n > 0 {
		r.Step.V, r.Step.Valid = n, true
	}
	if err := r.Fault(); err != nil {
		return refusal{err}
	}
	return refusal{fmt.Errorf("%w: max_id is %d", leaf.ErrOverflow, r.MaxID.V)}
}

func (d *sqlite) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return d.writer.do(ctx, func(s *session) error {
		return s.changeOne(sqlstore.ErrMovedOn, `UPDATE leaf_alloc SET max_id = ?, update_time = ? WHERE biz_tag = ? AND max_id = ? AND update_time = ?`,
			start, now(), tag, last.Range.End, last.Version)
	})
}

// page reads on a connection of its own, so that listings do not hold up those who
// advance. A database with a single connection suffices: then the writer reads.
func (d *sqlite) Page(ctx context.Context, after *string, limit int) ([]sqlstore.Row, error) {
	if d.db.Stats().MaxOpenConnections != 1 {
		return d.readPage(ctx, after, limit)
	}
	var records []sqlstore.Row
	err := d.writer.do(ctx, func(s *session) (err error) {
		records, err = pageSQLite(s.ctx, s.conn, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

func (d *sqlite) readPage(ctx context.Context, after *string, limit int) ([]sqlstore.Row, error) {
	conn, err := connect(ctx, d.db)
	if err != nil {
		return nil, err
	}
	defer sqlstore.Discard(conn)
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = ON"); err != nil {
		return nil, err
	}
	if err := checkSQLite(ctx, conn, allocTable()); err != nil {
		return nil, err
	}
	return pageSQLite(ctx, conn, after, limit)
}

func (d *sqlite) Create(ctx context.Context, tag segment.Tag) error {
	return d.writer.do(ctx, func(s *session) error {
		return s.changeOne(leaf.ErrTagExists, sqliteInsert+` ON CONFLICT DO NOTHING`,
			tag.Name, tag.MaxID, tag.Step, tag.Description, now())
	})
}

func (d *sqlite) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := d.writer.do(ctx, func(s *session) error {
		row, err := s.load(name)
		if err != nil {
			return err
		}
		if tag, err = row.Amend(change); err != nil {
			return refusal{err}
		}
		stamp := now()
		tag.Updated = time.UnixMilli(stamp)
		return s.changeOne(leaf.ErrUnknownTag,
			`UPDATE leaf_alloc SET max_id = ?, step = ?, description = ?, update_time = ? WHERE biz_tag = ?`,
			tag.MaxID, tag.Step, tag.Description, stamp, name)
	})
	if err != nil {
		return segment.Tag{}, err
	}
	return tag, nil
}

func (d *sqlite) Delete(ctx context.Context, name string) error {
	return d.writer.do(ctx, func(s *session) error {
		return s.changeOne(leaf.ErrUnknownTag, `DELETE FROM leaf_alloc WHERE biz_tag = ?`, name)
	})
}

func (d *sqlite) Close() error { return d.writer.close() }

// now is the time as the table keeps it, in Unix milliseconds.
func now() int64 { return time.Now().UnixMilli() }
