package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// update_time is in Unix milliseconds.
const sqliteWorkers = `CREATE TABLE leaf_worker (
	worker      INTEGER NOT NULL PRIMARY KEY CHECK (worker >= 0),
	record      TEXT    NOT NULL COLLATE BINARY,
	update_time INTEGER NOT NULL
) STRICT`

// NewRegistry returns a registry in the SQLite database db, which
// [InitRegistry] has prepared. It does not touch the database: what is wrong
// with it shows at the first call. The registry keeps one connection of db; a db that
// is also a store's must allow three, which needs one itself and one for listings. No
// connection stays idle in db from then on. Close the registry before db.
func NewRegistry(db *sql.DB, opts *Options) (*Registry, error) {
	if db == nil {
		return nil, fmt.Errorf("open sqlite registry: %w: no database", leaf.ErrInvalid)
	}
	db.SetMaxIdleConns(0)
	return sqlstore.NewRegistry(&sqliteRegistry{writer: newWriter(db, opts.file(), workerTable(), opts.logger())}), nil
}

// InitRegistry makes the SQLite database db ready for [NewRegistry]. The
// database is empty or Leaf's, such as a store in use. It fails with an error that
// wraps [io/fs.ErrExist] where there is a registry.
func InitRegistry(ctx context.Context, db *sql.DB) error {
	if err := initSQLite(ctx, db, workerTable(), nil); err != nil {
		return fmt.Errorf("init sqlite registry: %w", explainSQLite(err, "", workerTable()))
	}
	return nil
}

// ExistsRegistry reports whether db holds a registry.
func ExistsRegistry(ctx context.Context, db *sql.DB) (bool, error) {
	return existsSQLite(ctx, db, workerTable())
}

// sqliteRegistry has every call run by its writer.
type sqliteRegistry struct{ writer *writer }

func (d *sqliteRegistry) Load(ctx context.Context, id int64) (sqlstore.Text, error) {
	var held sqlstore.Text
	err := d.writer.do(ctx, func(s *session) (err error) {
		held, err = s.cell(id)
		return err
	})
	if err != nil {
		return sqlstore.Text{}, err // not held: the writer may still be filling it
	}
	return held, nil
}

func (d *sqliteRegistry) Swap(ctx context.Context, id int64, text string, replaces func(sqlstore.Text) error) error {
	return d.writer.do(ctx, func(s *session) error {
		held, err := s.cell(id)
		if err != nil {
			return err
		}
		if err := replaces(held); err != nil {
			return refusal{err}
		}
		if !held.Valid {
			return s.changeOne(sqlstore.ErrMoved, `INSERT INTO leaf_worker (worker, record, update_time) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
				id, text, now())
		}
		return s.changeOne(sqlstore.ErrMoved, `UPDATE leaf_worker SET record = ?, update_time = ? WHERE worker = ? AND record = ?`,
			text, now(), id, held.V)
	})
}

// cell returns the text in a cell.
func (s *session) cell(id int64) (sqlstore.Text, error) {
	var held sqlstore.Text
	err := s.conn.QueryRowContext(s.ctx, `SELECT record FROM leaf_worker WHERE worker = ?`, id).Scan(&held)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sqlstore.Text{}, nil
	case err == nil && !held.Valid:
		return sqlstore.Text{}, errDamaged // the column is never NULL
	}
	return held, err
}

func (d *sqliteRegistry) List(ctx context.Context) ([]sqlstore.Cell, error) {
	var cells []sqlstore.Cell
	err := d.writer.do(ctx, func(s *session) error {
		rows, err := s.conn.QueryContext(s.ctx, `SELECT worker, record FROM leaf_worker ORDER BY worker`)
		if err == nil {
			cells, err = sqlstore.ScanCells(rows)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return cells, nil
}

func (d *sqliteRegistry) Clock(context.Context) (time.Time, error) { return time.Time{}, nil }

func (d *sqliteRegistry) Forgetful(context.Context) (bool, error) { return false, nil }

func (d *sqliteRegistry) Explain(err error) error {
	return explainSQLite(err, d.writer.file, workerTable())
}

func (d *sqliteRegistry) Close() error { return d.writer.close() }
