package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// NewStore returns a store in the PostgreSQL, CockroachDB or YugabyteDB database
// db, opened with github.com/jackc/pgx/v5/stdlib; [InitStore] has prepared it. It
// does not connect: what is wrong with the server, the table or the session shows at
// the first call, and each call looks anew until all is well.
func NewStore(db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("open postgres store: %w: no database", leaf.ErrInvalid)
	}
	logger := opts.logger()
	return sqlstore.NewStore(newPostgres(db, logger), logger), nil
}

// postgresDB has every call use a connection of the pool.
type postgresDB struct{ *postgresPool }

func newPostgres(db *sql.DB, logger *slog.Logger) *postgresDB {
	return &postgresDB{&postgresPool{db: db, table: allocTable(), logger: logger}}
}

// One statement, which commits by itself. By its own step a tag moves by that of the
// very row version that moves. The %s say which server did it and how it commits.
const postgresAdvance = `UPDATE leaf_alloc
	SET max_id = max_id + CASE WHEN $1::bigint > 0 THEN $1::bigint ELSE step END, update_time = now()
	WHERE biz_tag = $2 AND max_id >= 0 AND ($1::bigint > 0 OR step > 0)
	RETURNING max_id, step, ` + postgresStamp + `::text, %s, %s`

func (d *postgresDB) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return sqlstore.Repeat(ctx, undonePostgres, func() (err error) {
			grant, err = s.advance(ctx, tag, n)
			return err
		})
	})
	if err != nil {
		return segment.Grant{}, err
	}
	return grant, nil
}

func (s *postgresSession) advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	rows, err := s.query(ctx, fmt.Sprintf(postgresAdvance, s.facts.server, s.facts.commits), n, tag)
	if err != nil {
		return segment.Grant{}, err
	}
	defer rows.Close()
	var end, count int64
	var step sql.Null[int64]
	var version, server, commits string
	for ; rows.Next(); count++ {
		if err := rows.Scan(&end, &step, &version, &server, &commits); err != nil {
			return segment.Grant{}, err
		}
	}
	// The row comes before the commit, whose failure shows only here.
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return segment.Grant{}, err
	}
	switch {
	case count == 0:
		return segment.Grant{}, s.whyNot(ctx, tag, n)
	case count > 1:
		return segment.Grant{}, fmt.Errorf("%d rows have this biz_tag: delete all but the one with the highest max_id, "+
			"and make biz_tag a unique key", count)
	}
	if n == 0 {
		n = step.V
	}
	grant := segment.Grant{Range: leaf.Range{Start: end - n, End: end}, Step: max(step.V, 1), Server: server, Version: version}
	return grant, commitFault(commits)
}

// whyNot says why an advance of tag by n found no row.
func (s *postgresSession) whyNot(ctx context.Context, tag string, n int64) error {
	r, err := scanPostgres(s.queryRow(ctx, postgresSelect+` WHERE biz_tag = $1`, tag))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return leaf.ErrUnknownTag
	case err != nil:
		return err
	}
	if n > 0 {
		r.Step = sql.Null[int64]{V: n, Valid: true}
	}
	if err := r.Fault(); err != nil {
		return err
	}
	return errors.New("the row has changed meanwhile: try again")
}

// giveBack is sent once, like all that has no repeat around it.
func (d *postgresDB) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return s.changeOne(ctx, sqlstore.ErrMovedOn, `UPDATE leaf_alloc SET max_id = $1, update_time = now()
			WHERE biz_tag = $2 AND max_id = $3 AND `+postgresStamp+`::text = $4 AND `+s.facts.server+` = $5`,
			start, tag, last.Range.End, last.Version, last.Server)
	})
}

func (d *postgresDB) Explain(err error) error { return explainPostgres(err, d.table) }

func (d *postgresDB) Close() error { return nil }
