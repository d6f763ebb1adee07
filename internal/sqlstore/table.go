package sqlstore

import (
	"fmt"
	"io/fs"

	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A Table is one of those that Leaf keeps in a database.
type Table struct {
	Name    string
	Missing error  // the error for a database without the table
	Columns string // those that must be there
	Use     string // the word for the table in messages
	Stake   string // the loss on a server that loses writes

	Identified bool // the identity of the store lives as long as the table
}

// Alloc is the table of tags.
var Alloc = Table{
	Name: "leaf_alloc", Missing: segment.ErrNotCreated, Columns: "biz_tag, max_id, step, update_time",
	Use: "store", Stake: "IDs that were handed out", Identified: true,
}

// Worker is the table of workers.
var Worker = Table{
	Name: "leaf_worker", Missing: worker.ErrNotCreated, Columns: "worker, record, update_time",
	Use: "registry", Stake: "leases that were granted",
}

// Absent is the error of a database without the table; what describes the missing thing.
func (t Table) Absent(what string) error { return fmt.Errorf("%w: %s", t.Missing, what) }

// LacksColumn explains the error of a statement with an unknown column.
func (t Table) LacksColumn(err error) error {
	return fmt.Errorf("the table %s lacks a column, or its name is another: it must have %s: %w", t.Name, t.Columns, err)
}

// Exists is the error of a database with an existing table; cause may be nil.
func (t Table) Exists(cause error) error {
	if cause == nil {
		cause = fs.ErrExist
	}
	return marked{text: "the database has a table " + t.Name + " already", cause: cause, sentinel: fs.ErrExist}
}

// A marked error wraps sentinel without showing its text.
type marked struct {
	text            string
	cause, sentinel error
}

func (m marked) Error() string        { return m.text }
func (m marked) Is(target error) bool { return target == m.sentinel }
func (m marked) Unwrap() error        { return m.cause }

// Mark returns err as an error that also wraps sentinel, without its text.
func Mark(err, sentinel error) error { return marked{err.Error(), err, sentinel} }
