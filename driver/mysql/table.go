package mysql

import (
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/worker"
)

// A table is one of those that Leaf keeps in a MySQL database.
type table struct {
	sqlstore.Table
	create  string                    // the statement that creates it
	meaning func(number uint16) error // the error of package leaf that an error number stands for, if any
}

func allocTable() table { return table{sqlstore.AllocTable(), mysqlTable, allocMeaning} }

func workerTable() table { return table{sqlstore.WorkerTable(), mysqlWorkers, workerMeaning} }

func nodeTable() table {
	return table{sqlstore.Table{
		Name: "WORKER_NODE", Flag: "--workers", Missing: worker.ErrNotCreated,
		Columns: "ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED",
		Use:     "registry", Stake: "worker IDs that were dealt",
	}, mysqlNodeTable, nodeMeaning}
}
