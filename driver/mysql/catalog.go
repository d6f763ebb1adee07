package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// columns is the select list of a tag. UNIX_TIMESTAMP makes the time independent
// of the session's time zone.
func (f *mysqlFacts) columns() string {
	const always = `SELECT biz_tag, max_id, step, UNIX_TIMESTAMP(update_time)`
	if f.description {
		return always + `, COALESCE(description, '') FROM leaf_alloc`
	}
	return always + `, '' FROM leaf_alloc`
}

func scanMySQL(row sqlstore.Scanner) (sqlstore.Row, error) {
	var r sqlstore.Row
	var updated sql.Null[float64]
	if err := row.Scan(&r.Name, &r.MaxID, &r.Step, &updated, &r.Description); err != nil {
		return sqlstore.Row{}, err
	}
	if updated.V > 0 {
		r.Updated = time.UnixMicro(int64(updated.V * 1e6))
	}
	return r, nil
}

// page returns up to limit rows in the order of the column's collation.
func (d *mysqlDB) Page(ctx context.Context, after *string, limit int) ([]sqlstore.Row, error) {
	where, args := ` WHERE biz_tag IS NOT NULL`, []any{limit}
	if after != nil {
		where, args = ` WHERE biz_tag > ?`, []any{*after, limit}
	}
	var records []sqlstore.Row
	err := d.use(ctx, func(conn *sql.Conn, facts *mysqlFacts) error {
		rows, err := conn.QueryContext(ctx, facts.columns()+where+` ORDER BY biz_tag LIMIT ?`, args...)
		if err != nil {
			return err
		}
		records, err = sqlstore.Collect(rows, scanMySQL)
		return err
	})
	return records, err
}

// rewrite is write, again for as long as the server undoes it in favour of others.
func (d *mysqlDB) rewrite(ctx context.Context, do func(*sql.Tx, *mysqlFacts) error) error {
	return sqlstore.Repeat(ctx, undoneMySQL, func() error { return d.write(ctx, "", do) })
}

func (d *mysqlDB) Create(ctx context.Context, tag segment.Tag) error {
	return d.rewrite(ctx, func(tx *sql.Tx, facts *mysqlFacts) error {
		return insertMySQL(ctx, tx, facts, tag)
	})
}

func insertMySQL(ctx context.Context, tx *sql.Tx, facts *mysqlFacts, tag segment.Tag) error {
	if err := facts.holds(tag.Description); err != nil {
		return err
	}
	query, args := `INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, ?, ?)`, []any{tag.Name, tag.MaxID, tag.Step}
	if tag.Description != "" {
		query, args = `INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES (?, ?, ?, ?)`, append(args, tag.Description)
	}
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

func (d *mysqlDB) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := d.rewrite(ctx, func(tx *sql.Tx, facts *mysqlFacts) error {
		row, err := facts.load(ctx, tx, name, ` FOR UPDATE`)
		if err != nil {
			return err
		}
		if tag, err = row.Amend(change); err != nil {
			return err
		}
		if err := facts.update(ctx, tx, tag, change); err != nil {
			return err
		}
		row, err = facts.load(ctx, tx, name, ``)
		tag = row.Tag()
		return err
	})
	if err != nil {
		return segment.Tag{}, err
	}
	return tag, nil
}

func (f *mysqlFacts) load(ctx context.Context, tx *sql.Tx, name, lock string) (sqlstore.Row, error) {
	r, err := scanMySQL(tx.QueryRowContext(ctx, f.columns()+` WHERE `+mysqlExact+lock, name, name))
	if errors.Is(err, sql.ErrNoRows) {
		return sqlstore.Row{}, leaf.ErrUnknownTag
	}
	return r, err
}

func (f *mysqlFacts) update(ctx context.Context, tx *sql.Tx, tag segment.Tag, change segment.Change) error {
	_, err := tx.ExecContext(ctx, `UPDATE leaf_alloc SET max_id = ?, step = ? WHERE `+mysqlExact,
		tag.MaxID, tag.Step, tag.Name, tag.Name)
	if err != nil || change.Description == nil {
		return err
	}
	if err := f.holds(tag.Description); err != nil || !f.description {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE leaf_alloc SET description = ? WHERE `+mysqlExact,
		tag.Description, tag.Name, tag.Name)
	return err
}

// holds reports why the table cannot keep a description.
func (f *mysqlFacts) holds(description string) error {
	if description != "" && !f.description {
		return fmt.Errorf("%w: the table leaf_alloc has no column description", leaf.ErrUnsupported)
	}
	return nil
}

func (d *mysqlDB) Delete(ctx context.Context, name string) error {
	return d.rewrite(ctx, func(tx *sql.Tx, _ *mysqlFacts) error {
		return changeOne(ctx, tx, leaf.ErrUnknownTag, `DELETE FROM leaf_alloc WHERE `+mysqlExact, name, name)
	})
}
