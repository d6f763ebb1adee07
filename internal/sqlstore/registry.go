package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry      = (*Registry)(nil)
	_ worker.LossyRegistry = (*Registry)(nil)
)

// A Registry keeps the records of workers in a database. It is a [worker.Registry]
// and a [worker.LossyRegistry]. Its methods are safe for concurrent use.
type Registry struct {
	dialect RegistryDialect
	closed  atomic.Bool
}

// NewRegistry returns a registry on a dialect, which it closes with itself.
func NewRegistry(d RegistryDialect) *Registry { return &Registry{dialect: d} }

// A RegistryDialect is what differs between databases. Its methods get arguments
// that were checked; their errors need not say which call failed.
type RegistryDialect interface {
	Load(ctx context.Context, id int64) (Text, error)

	// swap writes text into a cell, whose text it shows to replaces; an error of
	// that ends the call. It returns ErrMoved if the cell was changed since.
	Swap(ctx context.Context, id int64, text string, replaces func(Text) error) error

	List(ctx context.Context) ([]Cell, error) // by worker ID
	Clock(ctx context.Context) (time.Time, error)
	Forgetful(ctx context.Context) (bool, error)
	Explain(err error) error // says what to do about an error of the database
	Close() error
}

// A Text is the text in a cell, null if that was never written.
type Text = sql.Null[string]

// A Cell is a row of leaf_worker.
type Cell struct {
	ID   int64
	Text Text
}

// record reads the cell.
func (c Cell) record() (worker.Record, error) {
	r := worker.Record{Worker: c.ID}
	if !c.Text.Valid {
		return r, nil
	}
	if err := r.UnmarshalText([]byte(c.Text.V)); err != nil {
		return worker.Record{}, err
	}
	return r, nil
}

// ErrMoved is the conflict of a swap that read the cell before another one wrote it.
var ErrMoved = fmt.Errorf("%w meanwhile", worker.ErrConflict)

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	c := Cell{ID: id}
	err := r.call(ctx, func() (err error) {
		if id < 0 {
			return fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		}
		c.Text, err = r.dialect.Load(ctx, id)
		return err
	})
	var record worker.Record
	if err == nil {
		record, err = c.record()
	}
	if err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	return record, nil
}

// Swap writes new in the place of old. It is sent once.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) error {
	err := r.call(ctx, func() error {
		switch {
		case old.Worker != new.Worker:
			return fmt.Errorf("%w: the old record is of worker %d", leaf.ErrInvalid, old.Worker)
		case new.Worker < 0:
			return fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		case new.IsZero():
			return fmt.Errorf("%w: the new record is empty", leaf.ErrInvalid)
		}
		text, err := new.MarshalText()
		if err != nil {
			return err
		}
		return r.dialect.Swap(ctx, new.Worker, string(text), func(held Text) error { return compare(held, old) })
	})
	if err != nil {
		return fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	return nil
}

// compare reports why held is not old. Records are compared, not texts: one record
// may have been written in two ways, by another release or by hand.
func compare(held Text, old worker.Record) error {
	record, err := Cell{old.Worker, held}.record()
	if err == nil && !record.Equal(old) {
		return worker.ErrConflict
	}
	return err
}

// List returns all records, by worker ID. It fails if there is one that it cannot read.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) {
	var cells []Cell
	err := r.call(ctx, func() (err error) {
		cells, err = r.dialect.List(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	all := make([]worker.Record, len(cells))
	for i, c := range cells {
		if all[i], err = c.record(); err != nil {
			return nil, fmt.Errorf("list workers: worker %d: %w", c.ID, err)
		}
	}
	return all, nil
}

// Clock returns the server's time; the zero Time for SQLite, which is on this machine.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := r.call(ctx, func() (err error) {
		now, err = r.dialect.Clock(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the registry's clock: %w", err)
	}
	return now, nil
}

// MayLoseWrites reports whether the database may lose writes that it has acknowledged.
// In doubt it may.
func (r *Registry) MayLoseWrites(ctx context.Context) (bool, error) {
	var forgets bool
	err := r.call(ctx, func() (err error) {
		forgets, err = r.dialect.Forgetful(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask whether the registry loses writes: %w", err)
	}
	return forgets, nil
}

// Close ends the use of the database, which stays open: it is the caller's. Calls
// that wait fail with an error that wraps [leaf.ErrClosed], as later calls do.
func (r *Registry) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	if err := r.dialect.Close(); err != nil {
		return fmt.Errorf("close registry: %w", err)
	}
	return nil
}

func (r *Registry) call(ctx context.Context, do func() error) error {
	return Attempt(ctx, &r.closed, r.dialect.Explain, do)
}

// ScanCells reads all of rows, whose columns are worker and record, and closes them.
func ScanCells(rows *sql.Rows) ([]Cell, error) {
	defer rows.Close()
	var cells []Cell
	for rows.Next() {
		c := Cell{Text: Text{Valid: true}}
		if err := rows.Scan(&c.ID, &c.Text.V); err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, rows.Err()
}
