package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A Row is a row of leaf_alloc. One of a table made by hand may lack values.
type Row struct {
	Name        string
	MaxID, Step sql.Null[int64]
	Description string
	Updated     time.Time
}

func (r Row) Tag() segment.Tag {
	return segment.Tag{Name: r.Name, MaxID: r.MaxID.V, Step: r.Step.V, Description: r.Description, Updated: r.Updated}
}

// Fault reports why nothing can be allocated from the row by its own step.
func (r Row) Fault() error {
	if err := MaxIDFault(r.MaxID); err != nil {
		return err
	}
	return StepFault(r.Step)
}

func MaxIDFault(maxID sql.Null[int64]) error {
	const mend = "set it above every ID in use with leaf tag set TAG --max-id N"
	switch {
	case !maxID.Valid:
		return fmt.Errorf("the row has no max_id (NULL): %s", mend)
	case maxID.V < 0:
		return fmt.Errorf("the row has the negative max_id %d: %s", maxID.V, mend)
	}
	return nil
}

func StepFault(step sql.Null[int64]) error {
	const mend = "set one of at least 1 with leaf tag set TAG --step N"
	switch {
	case !step.Valid:
		return fmt.Errorf("the row has no step (NULL): %s", mend)
	case step.V < 1:
		return fmt.Errorf("the row has step %d: %s", step.V, mend)
	}
	return nil
}

// Amend returns the tag as change leaves it, all or nothing. Nobody knows what a
// missing max_id was: it is not made up.
func (r Row) Amend(change segment.Change) (segment.Tag, error) {
	if change.MaxID != nil && *change.MaxID < r.MaxID.V && !change.Force {
		return segment.Tag{}, fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, r.MaxID.V, *change.MaxID)
	}
	if change.MaxID != nil {
		r.MaxID = sql.Null[int64]{V: *change.MaxID, Valid: true}
	}
	if change.Step != nil {
		r.Step = sql.Null[int64]{V: *change.Step, Valid: true}
	}
	if change.Description != nil {
		r.Description = *change.Description
	}
	return r.Tag(), r.Fault()
}

type Scanner interface{ Scan(dest ...any) error }

// Collect reads all of rows and closes them.
func Collect(rows *sql.Rows, scan func(Scanner) (Row, error)) ([]Row, error) {
	defer rows.Close()
	var records []Row
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}

// Discard closes a connection rather than give it back to the pool.
func Discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // that is the way to say so
	_ = conn.Close()
}
