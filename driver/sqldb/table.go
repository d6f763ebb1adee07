package sqldb

import (
	"fmt"
	"io/fs"

	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A table is one of those that Leaf keeps in a database.
type table struct {
	name    string
	flag    string // of leaf init, which creates it
	missing error  // that is wrapped where there is none
	columns string // those that must be there
	use     string // what the table is to people
	stake   string // what a server loses that loses writes

	sqlite, mysql, postgres string                    // statements that create it
	mysqlMeaning            func(number uint16) error // the error of package leaf, if it stands for one
	postgresMeaning         func(code string) error   // the same
	postgresColumns         []postgresColumn          // that must be there
	hot                     string                    // the statement that an SQLite session prepares; may be empty
}

// allocTable is the table of tags.
func allocTable() table {
	return table{
		name: "leaf_alloc", flag: "--store", missing: segment.ErrNotCreated,
		columns: "biz_tag, max_id, step, update_time",
		use:     "store", stake: "IDs that were handed out",
		sqlite: sqliteTable, mysql: mysqlTable, postgres: postgresTable, hot: sqliteAdvance,
		mysqlMeaning: allocMeaning, postgresMeaning: postgresAllocMeaning, postgresColumns: postgresAllocColumns(),
	}
}

// workerTable is the table of workers.
func workerTable() table {
	return table{
		name: "leaf_worker", flag: "--workers", missing: worker.ErrNotCreated,
		columns: "worker, record, update_time",
		use:     "registry", stake: "leases that were granted",
		sqlite: sqliteWorkers, mysql: mysqlWorkers, postgres: postgresWorkers,
		mysqlMeaning: workerMeaning, postgresMeaning: postgresWorkerMeaning, postgresColumns: postgresWorkerColumns(),
	}
}

// An existsError says that the table is there already. It is [fs.ErrExist], without
// its words about files.
type existsError struct {
	table string
	cause error
}

func (e existsError) Error() string        { return "the database has a table " + e.table + " already" }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }
func (e existsError) Unwrap() error        { return e.cause }

// absent says how to create the table.
func (t table) absent(what, url string) error {
	return fmt.Errorf("%w: %s: create it with leaf init %s %s", t.missing, what, t.flag, url)
}
