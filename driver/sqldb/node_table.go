package sqldb

import (
	"database/sql"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// nodeTable is the table of starts.
func nodeTable() table {
	return table{
		name: "WORKER_NODE", flag: "--workers", missing: worker.ErrNotCreated,
		columns: "ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED",
		use:     "registry", stake: "worker IDs that were dealt",
		sqlite: sqliteNodeTable, mysql: mysqlNodeTable, postgres: postgresNodeTable,
		mysqlMeaning: nodeMeaning, postgresMeaning: postgresNodeMeaning, postgresColumns: postgresNodeColumns(),
	}
}

// postgresNodesTable is nodeTable where names without quotes are in small letters.
func postgresNodesTable() table {
	t := nodeTable()
	t.name, t.columns = "worker_node", "id, host_name, port, type, launch_date, modified, created"
	return t
}

// errNodesBehind is a table that deals IDs again.
var errNodesBehind = fmt.Errorf("%w: what makes the IDs of WORKER_NODE is behind its rows, and deals worker IDs again: set it to the highest ID that was ever dealt "+
	"(PostgreSQL: SELECT setval(pg_get_serial_sequence('worker_node', 'id'), N); MySQL: ALTER TABLE WORKER_NODE AUTO_INCREMENT = N), and start again", leaf.ErrRegression)

// scanStarts reads all of rows, which are ID, host, port, type and date, and closes them.
func scanStarts(rows *sql.Rows) ([]worker.Start, error) {
	defer rows.Close()
	var starts []worker.Start
	for rows.Next() {
		var s worker.Start
		var kind int64
		if err := rows.Scan(&s.Worker, &s.Host, &s.Port, &kind, &s.Date); err != nil {
			return nil, err
		}
		s.Kind = kindName(kind)
		starts = append(starts, s)
	}
	return starts, rows.Err()
}
