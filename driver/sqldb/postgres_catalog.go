package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// Times are asked for in microseconds, which a session's DateStyle and time zone have
// no part in.
const (
	postgresStamp  = `(EXTRACT(EPOCH FROM update_time) * 1000000)::bigint`
	postgresSelect = `SELECT biz_tag, max_id, step, COALESCE(description, ''), ` + postgresStamp + ` FROM leaf_alloc`
)

func scanPostgres(row scanner) (record, error) {
	var r record
	var updated sql.Null[int64]
	if err := row.Scan(&r.name, &r.maxID, &r.step, &r.description, &updated); err != nil {
		return record{}, err
	}
	if updated.Valid {
		r.updated = time.UnixMicro(updated.V)
	}
	return r, nil
}

// page returns up to limit rows in the order of the column's collation.
func (d *postgresDB) page(ctx context.Context, after *string, limit int) ([]record, error) {
	query, args := postgresSelect+` ORDER BY biz_tag LIMIT $1`, []any{int64(limit)}
	if after != nil {
		query, args = postgresSelect+` WHERE biz_tag > $2 ORDER BY biz_tag LIMIT $1`, append(args, *after)
	}
	var records []record
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		rows, err := s.query(ctx, query, args...)
		if err == nil {
			records, err = collect(rows, scanPostgres)
		}
		return err
	})
	return records, err
}

func (d *postgresDB) create(ctx context.Context, tag segment.Tag) error {
	return d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return repeat(ctx, undonePostgres, func() error { return s.insert(ctx, tag) })
	})
}

// insert needs a unique key on biz_tag, and fails without.
func (s *postgresSession) insert(ctx context.Context, tag segment.Tag) error {
	return s.changeOne(ctx, leaf.ErrTagExists, `INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time)
		VALUES ($1, $2, $3, $4, now()) ON CONFLICT (biz_tag) DO NOTHING`, tag.Name, tag.MaxID, tag.Step, tag.Description)
}

func (d *postgresDB) alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return repeat(ctx, undonePostgres, func() error {
			return s.transact(ctx, func(s *postgresSession) (err error) {
				tag, err = s.alter(ctx, name, change)
				return err
			})
		})
	})
	if err != nil {
		return segment.Tag{}, err
	}
	return tag, nil
}

func (s *postgresSession) alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	const one = ` WHERE biz_tag = $1`
	row, err := scanPostgres(s.queryRow(ctx, postgresSelect+one+` FOR UPDATE`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return segment.Tag{}, leaf.ErrUnknownTag
	}
	if err != nil {
		return segment.Tag{}, err
	}
	tag, err := row.amend(change)
	if err != nil {
		return segment.Tag{}, err
	}
	err = s.changeOne(ctx, leaf.ErrUnknownTag, `UPDATE leaf_alloc SET max_id = $2, step = $3, description = $4, update_time = now()`+one,
		name, tag.MaxID, tag.Step, tag.Description)
	if err != nil {
		return segment.Tag{}, err
	}
	row, err = scanPostgres(s.queryRow(ctx, postgresSelect+one, name))
	return row.tag(), err
}

func (d *postgresDB) remove(ctx context.Context, name string) error {
	return d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return repeat(ctx, undonePostgres, func() error {
			return s.changeOne(ctx, leaf.ErrUnknownTag, `DELETE FROM leaf_alloc WHERE biz_tag = $1`, name)
		})
	})
}
