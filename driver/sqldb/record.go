package sqldb

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A record is a row of leaf_alloc. One of a table made by hand may lack values.
type record struct {
	name        string
	maxID, step sql.Null[int64]
	description string
	updated     time.Time
}

func (r record) tag() segment.Tag {
	return segment.Tag{Name: r.name, MaxID: r.maxID.V, Step: r.step.V, Description: r.description, Updated: r.updated}
}

// fault reports why nothing can be allocated from the row by its own step.
func (r record) fault() error {
	if err := maxIDFault(r.maxID); err != nil {
		return err
	}
	return stepFault(r.step)
}

func maxIDFault(maxID sql.Null[int64]) error {
	const mend = "set it above every ID in use with leaf tag set TAG --max-id N"
	switch {
	case !maxID.Valid:
		return fmt.Errorf("the row has no max_id (NULL): %s", mend)
	case maxID.V < 0:
		return fmt.Errorf("the row has the negative max_id %d: %s", maxID.V, mend)
	}
	return nil
}

func stepFault(step sql.Null[int64]) error {
	const mend = "set one of at least 1 with leaf tag set TAG --step N"
	switch {
	case !step.Valid:
		return fmt.Errorf("the row has no step (NULL): %s", mend)
	case step.V < 1:
		return fmt.Errorf("the row has step %d: %s", step.V, mend)
	}
	return nil
}

// amend returns the tag as change leaves it, all or nothing. Nobody knows what a
// missing max_id was: it is not made up.
func (r record) amend(change segment.Change) (segment.Tag, error) {
	if change.MaxID != nil && *change.MaxID < r.maxID.V && !change.Force {
		return segment.Tag{}, fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, r.maxID.V, *change.MaxID)
	}
	if change.MaxID != nil {
		r.maxID = sql.Null[int64]{V: *change.MaxID, Valid: true}
	}
	if change.Step != nil {
		r.step = sql.Null[int64]{V: *change.Step, Valid: true}
	}
	if change.Description != nil {
		r.description = *change.Description
	}
	return r.tag(), r.fault()
}

type scanner interface{ Scan(dest ...any) error }

// collect reads all of rows and closes them.
func collect(rows *sql.Rows, scan func(scanner) (record, error)) ([]record, error) {
	defer rows.Close()
	var records []record
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}

// discard closes a connection rather than give it back to the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // that is the way to say so
	_ = conn.Close()
}
