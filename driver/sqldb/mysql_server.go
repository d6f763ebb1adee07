package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// checkServer reports why the server must not be used, and learns what it is like.
func checkServer(ctx context.Context, conn *sql.Conn, facts *mysqlFacts) error {
	vars, err := serverVariables(ctx, conn)
	if err != nil {
		return err
	}
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		if isOn(vars[name]) {
			return readOnlyError(name, vars[name])
		}
	}
	facts.flush = vars["innodb_flush_log_at_trx_commit"]
	facts.galera = isGalera(vars)
	facts.replicated = isOn(vars["log_bin"])
	facts.open = "0"
	if _, ok := vars["in_transaction"]; ok { // MySQL has no way to ask
		facts.open = "@@in_transaction"
	}
	facts.advance = fmt.Sprintf(mysqlAdvance, facts.open)
	facts.agreed, err = agreed(ctx, conn, vars)
	return err
}

func readOnlyError(name, value string) error {
	return fmt.Errorf("the server is read-only (%s=%s): name the primary server in the URL", name, value)
}

// serverVariables returns those of the named variables that the server has.
func serverVariables(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, `SHOW VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', 'innodb_read_only',
		'innodb_flush_log_at_trx_commit', 'log_bin', 'in_transaction', 'wsrep_on', 'wsrep_provider', 'group_replication_group_name')`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	vars := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		vars[name] = value
	}
	return vars, rows.Err()
}

func isOn(value string) bool {
	return value != "" && value != "0" && !strings.EqualFold(value, "OFF")
}

// agreed reports whether a commit is agreed upon with other servers. In doubt it is
// not: then a change of servers is noticed, and costs but some IDs.
func agreed(ctx context.Context, conn *sql.Conn, vars map[string]string) (bool, error) {
	if isGalera(vars) {
		return true, nil
	}
	if vars["group_replication_group_name"] == "" {
		return false, nil
	}
	var online int
	err := conn.QueryRowContext(ctx, `SELECT COUNT(*) FROM performance_schema.replication_group_members
		WHERE member_id = @@server_uuid AND member_state = 'ONLINE'`).Scan(&online)
	if _, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return false, nil // not to be read by this user
	}
	return online > 0, err
}

// isGalera reports whether the server replicates by Galera: wsrep_on alone does
// nothing without a provider.
func isGalera(vars map[string]string) bool {
	provider := vars["wsrep_provider"]
	return isOn(vars["wsrep_on"]) && provider != "" && !strings.EqualFold(provider, "none")
}
