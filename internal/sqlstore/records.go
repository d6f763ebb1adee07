package sqlstore

import (
	"cmp"
	"database/sql"
	"fmt"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// A cell is a row of leaf_worker; its text is null if it was never written.
type cell struct {
	id   sql.Null[int64]
	text sql.Null[string]
}

// record reads the cell of a worker.
func (s *Session) record(c cell, id int64) (worker.Record, error) {
	r := worker.Record{Worker: id}
	if !c.text.Valid {
		return r, nil
	}
	if err := r.UnmarshalText([]byte(c.text.V)); err != nil {
		return worker.Record{}, err
	}
	return s.versioned(r, c.text.V), nil
}

// versioned returns r with its text as the version, unless a swap reads the cell anyway.
func (s *Session) versioned(r worker.Record, text string) worker.Record {
	if r.Version = text; s.Guarded {
		r.Version = ""
	}
	return r
}

// cells returns the selected cells, or one without an ID. Each row also has the guard of the server
// and the session.
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

// Swap sends the statement that compares and writes once, and returns new with its version. It
// reads the cell first if old has no version. If the server undid the statement in favour of
// others, who may have written this very cell, Swap reads the cell again.
func (s *Session) Swap(old, new worker.Record) (worker.Record, error) {
	encoded, err := new.MarshalText()
	if err != nil {
		return worker.Record{}, err
	}
	text := string(encoded)
	c := cell{text: sql.Null[string]{V: old.Version, Valid: true}}
	if old.Version == "" || old.Version == text { // a server may not count a row that stays as it is
		c, err = s.holds(old)
	}
	if err == nil && c.text.V != text {
		err = s.replace(old.Worker, c, text)
	}
	if s.Undone != nil && s.Undone(err) {
		_, changed := s.holds(old)
		err = cmp.Or(changed, err)
	}
	return s.versioned(new, text), err
}

// holds returns the cell of a record, if it holds that record. Records are compared, not
// texts: one record may have been written in two ways, by another release or by hand.
func (s *Session) holds(r worker.Record) (cell, error) {
	c, err := s.cell(r.Worker)
	if err != nil {
		return cell{}, err
	}
	record, err := s.record(c, r.Worker)
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

// replace writes a cell that still has the text c, byte for byte.
func (s *Session) replace(id int64, c cell, text string) error {
	if !c.text.Valid {
		return s.changeOne(ErrMoved, `INSERT INTO leaf_worker (worker, record, update_time) VALUES ($1, $2, `+s.Now+`)`+s.ifAbsent("worker"), id, text)
	}
	return s.changeOne(ErrMoved, `UPDATE leaf_worker SET record = $2`+s.Touch+` WHERE worker = $1 AND `+s.equal("record", "$3"), id, text, c.text.V)
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

// Record returns the record of a worker.
func (s *Session) Record(id int64) (worker.Record, error) {
	c, err := s.cell(id)
	if err != nil {
		return worker.Record{}, err
	}
	return s.record(c, id)
}

// Records returns all records, by worker ID. An unreadable record fails the call.
func (s *Session) Records() ([]worker.Record, error) {
	cells, err := s.cells(`1 = 1 ORDER BY w.worker`)
	if err != nil {
		return nil, err
	}
	all := make([]worker.Record, 0, len(cells))
	for _, c := range cells {
		if !c.id.Valid {
			continue
		}
		record, err := s.record(c, c.id.V)
		if err != nil {
			return nil, fmt.Errorf("worker %d: %w", c.id.V, err)
		}
		all = append(all, record)
	}
	return all, nil
}
