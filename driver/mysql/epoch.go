package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/worker"
)

// epochQuery asks when the server was started, how often it became a replica of another one
// or ceased to be that since, and how old it is. Uptime counts from the time at which the
// statement began, as UNIX_TIMESTAMP does, so that their difference stays when the clock is
// set. The %s is the table of the server's status.
const epochQuery = `SELECT UNIX_TIMESTAMP() - MAX(IF(VARIABLE_NAME = 'Uptime', CAST(VARIABLE_VALUE AS SIGNED), 0)),
	SUM(IF(VARIABLE_NAME = 'Uptime', 0, CAST(VARIABLE_VALUE AS SIGNED))),
	MAX(IF(VARIABLE_NAME = 'Uptime', CAST(VARIABLE_VALUE AS SIGNED), 0))
	FROM %s WHERE VARIABLE_NAME IN ('Uptime', 'Com_change_master', 'Com_change_replication_source', 'Com_slave_start', 'Com_slave_stop',
	'Com_replica_start', 'Com_replica_stop', 'Com_start_slave', 'Com_stop_slave', 'Com_start_all_slaves', 'Com_stop_all_slaves')`

// grain is the least age in seconds of a server with a name: a crashed server may restart within
// the second of its start.
const grain = 2

// epoch identifies the answering server: by its identity among servers that replicate from each
// other, its start, and the number of statements that turned it into a replica and back. Operators
// may still promote a server, twice, without any such statement.
func (f *facts) epoch(ctx context.Context, conn *sql.Conn) (worker.ServerEpoch, error) {
	epoch := worker.ServerEpoch{Lossy: f.mayLose(), Untracked: true}
	if !epoch.Lossy {
		return epoch, nil
	}
	var start, changes, age int64
	err := conn.QueryRowContext(ctx, fmt.Sprintf(epochQuery, f.status)).Scan(&start, &changes, &age)
	if _, ok := errors.AsType[*gomysql.MySQLError](err); ok {
		return epoch, nil // not to be read by this user
	}
	if err == nil && age >= grain {
		epoch.Incarnation = fmt.Sprintf("%s/%d/%d", f.name, start, changes)
	}
	return epoch, err
}
