package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// update_time is in Unix milliseconds.
const sqliteWorkers = `CREATE TABLE leaf_worker (
	worker      INTEGER NOT NULL PRIMARY KEY CHECK (worker >= 0),
	record      TEXT    NOT NULL COLLATE BINARY,
	update_time INTEGER NOT NULL
) STRICT`

// OpenSQLiteRegistry returns a registry in the SQLite database db, which
// [InitSQLiteRegistry] has prepared. It does not touch the database: what is wrong
// with it shows at the first call. The registry keeps one connection of db; a db that
// is also a store's must allow three, which needs one itself and one for listings. No
// connection stays idle in db from then on. Close the registry before db.
func OpenSQLiteRegistry(db *sql.DB, opts *Options) (*Registry, error) {
	if db == nil {
		return nil, fmt.Errorf("open sqlite registry: %w: no database", leaf.ErrInvalid)
	}
	db.SetMaxIdleConns(0)
	return &Registry{dialect: &sqliteRegistry{writer: newWriter(db, opts.file(), workerTable(), opts.logger())}}, nil
}

// InitSQLiteRegistry makes the SQLite database db ready for [OpenSQLiteRegistry]. The
// database is empty or Leaf's, such as a store in use. It fails with an error that
// wraps [io/fs.ErrExist] where there is a registry.
func InitSQLiteRegistry(ctx context.Context, db *sql.DB) error {
	if err := initSQLite(ctx, db, workerTable(), nil); err != nil {
		return fmt.Errorf("init sqlite registry: %w", explainSQLite(err, "", workerTable()))
	}
	return nil
}

// ExistsSQLiteRegistry reports whether db holds a registry.
func ExistsSQLiteRegistry(ctx context.Context, db *sql.DB) (bool, error) {
	return existsSQLite(ctx, db, workerTable())
}

// sqliteRegistry has every call run by its writer.
type sqliteRegistry struct{ writer *writer }

func (d *sqliteRegistry) load(ctx context.Context, id int64) (heldText, error) {
	var held heldText
	err := d.writer.do(ctx, func(s *session) (err error) {
		held, err = s.cell(id)
		return err
	})
	if err != nil {
		return heldText{}, err // not held: the writer may still be filling it
	}
	return held, nil
}

func (d *sqliteRegistry) swap(ctx context.Context, id int64, text string, replaces func(heldText) error) error {
	return d.writer.do(ctx, func(s *session) error {
		held, err := s.cell(id)
		if err != nil {
			return err
		}
		if err := replaces(held); err != nil {
			return refusal{err}
		}
		if !held.Valid {
			return s.changeOne(errMoved, `INSERT INTO leaf_worker (worker, record, update_time) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
				id, text, now())
		}
		return s.changeOne(errMoved, `UPDATE leaf_worker SET record = ?, update_time = ? WHERE worker = ? AND record = ?`,
			text, now(), id, held.V)
	})
}

// cell returns the text in a cell.
func (s *session) cell(id int64) (heldText, error) {
	var held heldText
	err := s.conn.QueryRowContext(s.ctx, `SELECT record FROM leaf_worker WHERE worker = ?`, id).Scan(&held)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return heldText{}, nil
	case err == nil && !held.Valid:
		return heldText{}, errDamaged // the column is never NULL
	}
	return held, err
}

func (d *sqliteRegistry) list(ctx context.Context) ([]cell, error) {
	var cells []cell
	err := d.writer.do(ctx, func(s *session) error {
		rows, err := s.conn.QueryContext(s.ctx, `SELECT worker, record FROM leaf_worker ORDER BY worker`)
		if err == nil {
			cells, err = scanCells(rows)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return cells, nil
}

func (d *sqliteRegistry) clock(context.Context) (time.Time, error) { return time.Time{}, nil }

func (d *sqliteRegistry) forgetful(context.Context) (bool, error) { return false, nil }

func (d *sqliteRegistry) explain(err error) error {
	return explainSQLite(err, d.writer.file, workerTable())
}

func (d *sqliteRegistry) close() error { return d.writer.close() }
