package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry      = (*Registry)(nil)
	_ worker.LossyRegistry = (*Registry)(nil)
)

// Workers is the [Access] to the table of workers.
type Workers interface {
	Access
	Reign(ctx context.Context) (worker.Reign, error)
}

// A Registry keeps the records of workers in a database. It is a [worker.Registry]
// and a [worker.LossyRegistry]. Its methods are safe for concurrent use.
type Registry struct {
	handle
	db Workers
}

// A cell is a row of leaf_worker; its text is null if it was never written.
type cell struct {
	id   sql.Null[int64]
	text sql.Null[string]
}

// record reads the cell of a worker.
func (c cell) record(id int64) (worker.Record, error) {
	r := worker.Record{Worker: id}
	if !c.text.Valid {
		return r, nil
	}
	if err := r.UnmarshalText([]byte(c.text.V)); err != nil {
		return worker.Record{}, err
	}
	return r, nil
}

// cells returns the cells that a condition selects, and one without an ID where there is
// none: each row says too what the server and the session are like.
func (s *Session) cells(condition string, args ...any) ([]cell, error) {
	rows, err := s.Query(`SELECT `+s.Guard+`, w.worker, w.record FROM (SELECT 1 AS one) AS one LEFT JOIN leaf_worker AS w ON `+condition, args...)
	return Collect(rows, err, func(scan func(...any) error) (c cell, err error) {
		var guard string
		if err = scan(&guard, &c.id, &c.text); err == nil && s.Check != nil {
			err = s.Check(guard)
		}
		if err == nil && c.id.Valid && !c.text.Valid {
			err = errNull
		}
		return c, err
	})
}

// cell returns the cell of a worker.
func (s *Session) cell(id int64) (cell, error) {
	cells, err := s.cells(`w.worker = $1`, id)
	if err != nil {
		return cell{}, err
	}
	return cells[0], nil
}

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	return call(ctx, &r.handle, fmt.Sprintf("load worker %d", id), func() (worker.Record, error) {
		if id < 0 {
			return worker.Record{}, fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		}
		c, err := in(ctx, r.db.Do, func(s *Session) (cell, error) { return s.cell(id) })
		if err != nil {
			return worker.Record{}, err
		}
		return c.record(id)
	})
}

// Swap writes new in the place of old. It is sent once.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) error {
	return act(ctx, &r.handle, fmt.Sprintf("swap worker %d", new.Worker), func() error {
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
		return r.db.Do(ctx, func(s *Session) error { return s.swap(old, string(text)) })
	})
}

// swap sends the statement that compares and writes once. Where the server undid it in
// favour of others, who may have written to this very cell, the cell is read again.
func (s *Session) swap(old worker.Record, text string) error {
	c, err := s.holds(old)
	if err != nil || c.text.V == text {
		return err
	}
	err = s.replace(old.Worker, c, text)
	if s.Undone == nil || !s.Undone(err) {
		return err
	}
	_, changed := s.holds(old)
	return cmp.Or(changed, err)
}

// holds returns the cell of a record, if it holds that record. Records are compared, not
// texts: one record may have been written in two ways, by another release or by hand.
func (s *Session) holds(r worker.Record) (cell, error) {
	c, err := s.cell(r.Worker)
	if err != nil {
		return cell{}, err
	}
	record, err := c.record(r.Worker)
	if err == nil && !record.Equal(r) {
		err = worker.ErrConflict
	}
	if err != nil {
		return cell{}, Refusal{err}
	}
	return c, nil
}

// ErrMoved is the conflict of a swap that read the cell before another one wrote it.
var ErrMoved = fmt.Errorf("%w meanwhile", worker.ErrConflict)

// replace writes a cell if it holds the very text that was read, byte for byte.
func (s *Session) replace(id int64, c cell, text string) error {
	if !c.text.Valid {
		return s.changeOne(ErrMoved, `INSERT INTO leaf_worker (worker, record, update_time) VALUES ($1, $2, `+s.Now+`)`+s.ifAbsent("worker"), id, text)
	}
	return s.changeOne(ErrMoved, `UPDATE leaf_worker SET record = $2`+s.Touch+` WHERE worker = $1 AND `+s.equal("record", "$3"), id, text, c.text.V)
}

// List returns all records, by worker ID. It fails if there is one that it cannot read.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) {
	return call(ctx, &r.handle, "list workers", func() ([]worker.Record, error) {
		cells, err := in(ctx, r.db.Do, func(s *Session) ([]cell, error) { return s.cells(`1 = 1 ORDER BY w.worker`) })
		if err != nil {
			return nil, err
		}
		all := make([]worker.Record, 0, len(cells))
		for _, c := range cells {
			if !c.id.Valid {
				continue
			}
			record, err := c.record(c.id.V)
			if err != nil {
				return nil, fmt.Errorf("worker %d: %w", c.id.V, err)
			}
			all = append(all, record)
		}
		return all, nil
	})
}

// Clock returns the server's time; the zero Time for SQLite, which is on this machine.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) {
	return call(ctx, &r.handle, "ask the registry's clock", func() (time.Time, error) {
		return in(ctx, r.db.Do, (*Session).Time)
	})
}

// Time returns the server's time; the zero Time if it runs on this machine.
func (s *Session) Time() (time.Time, error) {
	if s.Clock == "" {
		return time.Time{}, nil
	}
	var micros int64
	if err := s.QueryRow(`SELECT ` + s.Clock).Scan(&micros); err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(micros), nil
}

// Reign returns which server answers, and whether it may lose writes.
func (r *Registry) Reign(ctx context.Context) (worker.Reign, error) {
	return call(ctx, &r.handle, "ask whether the registry loses writes", func() (worker.Reign, error) { return r.db.Reign(ctx) })
}
