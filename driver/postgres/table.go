package postgres

import "github.com/leaf-id/leaf/internal/sqlstore"

// A table is one of those that Leaf keeps in a PostgreSQL database.
type table struct {
	sqlstore.Table
	create  string                  // the statement that creates it
	meaning func(code string) error // the error of package leaf that an error code stands for, if any
	columns []postgresColumn        // that must be there
}

func allocTable() table {
	return table{sqlstore.AllocTable(), postgresTable, postgresAllocMeaning, postgresAllocColumns()}
}

func workerTable() table {
	return table{sqlstore.WorkerTable(), postgresWorkers, postgresWorkerMeaning, postgresWorkerColumns()}
}
