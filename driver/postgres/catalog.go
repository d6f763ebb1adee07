package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// Times are asked for in microseconds, which a session's DateStyle and time zone have
// no part in.
const (
	postgresStamp  = `(EXTRACT(EPOCH FROM update_time) * 1000000)::bigint`
	postgresSelect = `SELECT biz_tag, max_id, step, COALESCE(description, ''), ` + postgresStamp + ` FROM leaf_alloc`
)

func scanPostgres(row sqlstore.Scanner) (sqlstore.Row, error) {
	var r sqlstore.Row
	var updated sql.Null[int64]
	if err := row.Scan(&r.Name, &r.MaxID, &r.Step, &r.Description, &updated); err != nil {
		return sqlstore.Row{}, err
	}
	if updated.Valid {
		r.Updated = time.UnixMicro(updated.V)
	}
	return r, nil
}

// page returns up to limit rows in the order of the column's collation.
func (d *postgresDB) Page(ctx context.Context, after *string, limit int) ([]sqlstore.Row, error) {
	query, args := postgresSelect+` ORDER BY biz_tag LIMIT $1`, []any{int64(limit)}
	if after != nil {
		query, args = postgresSelect+` WHERE biz_tag > $2 ORDER BY biz_tag LIMIT $1`, append(args, *after)
	}
	var records []sqlstore.Row
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		rows, err := s.query(ctx, query, args...)
		if err == nil {
			records, err = sqlstore.Collect(rows, scanPostgres)
		}
		return err
	})
	return records, err
}

func (d *postgresDB) Create(ctx context.Context, tag segment.Tag) error {
	return d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return sqlstore.Repeat(ctx, undonePostgres, func() error { return s.insert(ctx, tag) })
	})
}

// insert needs a unique key on biz_tag, and fails without.
func (s *postgresSession) insert(ctx context.Context, tag segment.Tag) error {
	return s.changeOne(ctx, leaf.ErrTagExists, `INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time)
		VALUES ($1, $2, $3, $4, now()) ON CONFLICT (biz_tag) DO NOTHING`, tag.Name, tag.MaxID, tag.Step, tag.Description)
}

func (d *postgresDB) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return sqlstore.Repeat(ctx, undonePostgres, func() error {
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
	tag, err := row.Amend(change)
	if err != nil {
		return segment.Tag{}, err
	}
	err = s.changeOne(ctx, leaf.ErrUnknownTag, `UPDATE leaf_alloc SET max_id = $2, step = $3, description = $4, update_time = now()`+one,
		name, tag.MaxID, tag.Step, tag.Description)
	if err != nil {
		return segment.Tag{}, err
	}
	row, err = scanPostgres(s.queryRow(ctx, postgresSelect+one, name))
	return row.Tag(), err
}

func (d *postgresDB) Delete(ctx context.Context, name string) error {
	return d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return sqlstore.Repeat(ctx, undonePostgres, func() error {
			return s.changeOne(ctx, leaf.ErrUnknownTag, `DELETE FROM leaf_alloc WHERE biz_tag = $1`, name)
		})
	})
}
