package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// NewRegistry returns a registry in the database db, opened as for
// [NewStore]; a store may use it too. It does not connect: what is wrong with the
// server, the table or the session shows at the first call, and each call looks anew
// until all is well.
func NewRegistry(db *sql.DB, opts *Options) (*Registry, error) {
	if db == nil {
		return nil, fmt.Errorf("open postgres registry: %w: no database", leaf.ErrInvalid)
	}
	return sqlstore.NewRegistry(&postgresRegistry{&postgresPool{db: db, table: workerTable(), logger: opts.logger()}}), nil
}

// InitRegistry creates the table leaf_worker in db. Where there is one it
// fails with an error that wraps [io/fs.ErrExist].
func InitRegistry(ctx context.Context, db *sql.DB) error {
	err := createPostgres(ctx, db, workerTable(), func(*postgresSession) error { return nil })
	if err != nil {
		return fmt.Errorf("init postgres registry: %w", explainPostgres(err, workerTable()))
	}
	return nil
}

// ExistsRegistry reports whether db has a table leaf_worker.
func ExistsRegistry(ctx context.Context, db *sql.DB) (bool, error) {
	return existsPostgres(ctx, db, workerTable())
}

// postgresRegistry has every call use a connection of the pool.
type postgresRegistry struct{ *postgresPool }

// held returns the text in a cell. The server may be a standby by now, behind its
// primary: it says so in the same statement.
func (s *postgresSession) held(ctx context.Context, id int64) (sqlstore.Text, error) {
	var standby bool
	var held sqlstore.Text
	err := s.queryRow(ctx, `SELECT `+s.facts.standby+`, (SELECT record FROM leaf_worker WHERE worker = $1)`, id).Scan(&standby, &held)
	if err != nil {
		return sqlstore.Text{}, err
	}
	return held, standbyFault(standby)
}

func (d *postgresRegistry) Load(ctx context.Context, id int64) (sqlstore.Text, error) {
	var held sqlstore.Text
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) (err error) {
		held, err = s.held(ctx, id)
		return err
	})
	return held, err
}

// swap sends the statement that compares and writes once; it commits by itself.
func (d *postgresRegistry) Swap(ctx context.Context, id int64, text string, replaces func(sqlstore.Text) error) error {
	return d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		held, err := s.held(ctx, id)
		if err != nil {
			return err
		}
		if err := replaces(held); err != nil {
			return err
		}
		err = s.replace(ctx, id, held, text)
		if !isPostgres(err, postgresSerialization, postgresDeadlock) {
			return err
		}
		// Undone, for certain, in favour of somebody else's: most likely of a swap.
		if held, loadErr := s.held(ctx, id); loadErr == nil {
			return cmp.Or(replaces(held), err)
		}
		return err
	})
}

func (s *postgresSession) replace(ctx context.Context, id int64, held sqlstore.Text, text string) error {
	if !held.Valid {
		return s.changeOne(ctx, sqlstore.ErrMoved, `INSERT INTO leaf_worker (worker, record, update_time) VALUES ($1, $2, now())
			ON CONFLICT (worker) DO NOTHING`, id, text)
	}
	return s.changeOne(ctx, sqlstore.ErrMoved, `UPDATE leaf_worker SET record = $1, update_time = now() WHERE worker = $2 AND record = $3`,
		text, id, held.V)
}

func (d *postgresRegistry) List(ctx context.Context) ([]sqlstore.Cell, error) {
	var cells []sqlstore.Cell
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) (err error) {
		cells, err = s.cells(ctx)
		return err
	})
	return cells, err
}

// cells returns all cells. There is a row also where there is no cell, which says
// whether the server is a standby.
func (s *postgresSession) cells(ctx context.Context) ([]sqlstore.Cell, error) {
	rows, err := s.query(ctx, `SELECT one.standby, w.worker, w.record
		FROM (SELECT `+s.facts.standby+` AS standby) AS one LEFT JOIN leaf_worker AS w ON true ORDER BY w.worker`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cells []sqlstore.Cell
	for rows.Next() {
		var standby bool
		var id sql.Null[int64]
		var text sqlstore.Text
		if err := rows.Scan(&standby, &id, &text); err != nil {
			return nil, err
		}
		if err := standbyFault(standby); err != nil {
			return nil, err
		}
		if id.Valid {
			cells = append(cells, sqlstore.Cell{ID: id.V, Text: text})
		}
	}
	return cells, rows.Err()
}

func (d *postgresRegistry) Clock(ctx context.Context) (time.Time, error) {
	var micros int64
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		return s.queryRow(ctx, `SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	})
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(micros), nil
}

// forgetful looks anew: servers change places, and their settings change.
func (d *postgresRegistry) Forgetful(ctx context.Context) (bool, error) {
	var forgets bool
	err := d.use(ctx, func(ctx context.Context, s *postgresSession) error {
		facts, err := inspectServer(ctx, s)
		if err == nil {
			forgets = facts.forgets()
		}
		return err
	})
	return forgets, err
}

func (d *postgresRegistry) Explain(err error) error { return explainPostgres(err, d.table) }

func (d *postgresRegistry) Close() error { return nil }
