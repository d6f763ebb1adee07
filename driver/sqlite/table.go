package sqlite

import "github.com/leaf-id/leaf/internal/sqlstore"

// A table is one of those that Leaf keeps in an SQLite database.
type table struct {
	sqlstore.Table
	create string // the statement that creates it
	hot    string // the statement that a session prepares; may be empty
}

func allocTable() table { return table{sqlstore.AllocTable(), sqliteTable, sqliteAdvance} }

func workerTable() table { return table{sqlstore.WorkerTable(), sqliteWorkers, ""} }
