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
	Flag    string // of leaf init, which creates it
	Missing error  // that is wrapped where there is none
	Columns string // those that must be there
	Use     string // what the table is to people
	Stake   string // what a server loses that loses writes
}

// AllocTable is the table of tags.
func AllocTable() Table {
	return Table{
		Name: "leaf_alloc", Flag: "--store", Missing: segment.ErrNotCreated,
		Columns: "biz_tag, max_id, step, update_time",
		Use:     "store", Stake: "IDs that were handed out",
	}
}

// WorkerTable is the table of workers.
func WorkerTable() Table {
	return Table{
		Name: "leaf_worker", Flag: "--workers", Missing: worker.ErrNotCreated,
		Columns: "worker, record, update_time",
		Use:     "registry", Stake: "leases that were granted",
	}
}

// Absent says how to create the table.
func (t Table) Absent(what, url string) error {
	return fmt.Errorf("%w: %s: create it with leaf init %s %s", t.Missing, what, t.Flag, url)
}

// An ExistsError says that the table is there already. It is [fs.ErrExist], without
// its words about files.
type ExistsError struct {
	Table string
	Cause error
}

func (e ExistsError) Error() string        { return "the database has a table " + e.Table + " already" }
func (e ExistsError) Is(target error) bool { return target == fs.ErrExist }
func (e ExistsError) Unwrap() error        { return e.Cause }
