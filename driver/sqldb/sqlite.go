package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// OpenSQLite returns a store in the SQLite database db, which [InitSQLite] has
// prepared. It does not touch the database: what is wrong with it shows at the
// first call. The store uses one connection of db, which it keeps; close the store
// before db. Use one store per file and process: two of them do not share commits.
func OpenSQLite(db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("open sqlite store: %w: no database", leaf.ErrInvalid)
	}
	return &Store{dialect: &sqlite{writer: newWriter(db, opts.logger())}}, nil
}

// sqlite has every call run by its writer.
type sqlite struct {
	writer *writer
}

// A counter at or near the end of its range is left alone: no statement raises an
// error for one call that would have to fail its whole batch.
const sqliteAdvance = `UPDATE leaf_alloc
	SET max_id = max_id + iif(?1 > 0, ?1, step), update_time = ?2
	WHERE biz_tag = ?3 AND max_id <= 9223372036854775807 - iif(?1 > 0, ?1, step)
	RETURNING max_id, step`

func (d *sqlite) advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := d.writer.do(ctx, func(s *session) error {
		var end, step int64
		err := s.advance.QueryRowContext(s.ctx, n, now(), tag).Scan(&end, &step)
		if errors.Is(err, sql.ErrNoRows) {
			return d.whyNot(s, tag)
		}
		if err != nil {
			return err
		}
		// With n = 0 the step is that of the very row and statement that moved.
		if n == 0 {
			n = step
		}
		grant = segment.Grant{Range: leaf.Range{Start: end - n, End: end}, Step: step}
		return nil
	})
	if err != nil {
		return segment.Grant{}, err // not grant: the writer may still be filling it
	}
	return grant, nil
}

// whyNot says why an advance of tag found no row.
func (d *sqlite) whyNot(s *session, tag string) error {
	t, err := s.load(tag)
	if err != nil {
		return err
	}
	return refusal{fmt.Errorf("%w: max_id is %d", leaf.ErrOverflow, t.MaxID)}
}

func (d *sqlite) giveBack(ctx context.Context, tag string, unused leaf.Range) error {
	return d.writer.do(ctx, func(s *session) error {
		return s.changeOne(errMovedOn, `UPDATE leaf_alloc SET max_id = ?, update_time = ? WHERE biz_tag = ? AND max_id = ?`,
			unused.Start, now(), tag, unused.End)
	})
}

// list goes through the writer as well, so that a database with a single
// connection suffices.
func (d *sqlite) list(ctx context.Context) ([]segment.Tag, error) {
	var tags []segment.Tag
	err := d.writer.do(ctx, func(s *session) (err error) {
		tags, err = s.all()
		return err
	})
	if err != nil {
		return nil, err
	}
	return tags, nil
}

func (d *sqlite) create(ctx context.Context, tag segment.Tag) error {
	return d.writer.do(ctx, func(s *session) error {
		return s.changeOne(leaf.ErrTagExists, sqliteInsert+` ON CONFLICT DO NOTHING`,
			tag.Name, tag.MaxID, tag.Step, tag.Description, now())
	})
}

func (d *sqlite) alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := d.writer.do(ctx, func(s *session) (err error) {
		if tag, err = s.load(name); err != nil {
			return err
		}
		if err := amend(&tag, change); err != nil {
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

func (d *sqlite) remove(ctx context.Context, name string) error {
	return d.writer.do(ctx, func(s *session) error {
		return s.changeOne(leaf.ErrUnknownTag, `DELETE FROM leaf_alloc WHERE biz_tag = ?`, name)
	})
}

func (d *sqlite) close() error { return d.writer.close() }

// now is the time as the table keeps it, in Unix milliseconds.
func now() int64 { return time.Now().UnixMilli() }
