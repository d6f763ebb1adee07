package mysql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/internal/mysqlconn"
)

// inspectServer refuses an unfit server, and learns its properties.
func inspectServer(ctx context.Context, conn *sql.Conn) (*facts, error) {
	var state serverState
	several := false
	err := conn.Raw(func(c any) (err error) {
		if ours, ok := c.(*hostConn); ok {
			several = len(ours.host.connector.hosts) > 1
		}
		state, err = askServer(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	open, status := "0", "performance_schema.global_status"
	if _, ok := state.vars["in_transaction"]; ok { // MySQL has no way to ask
		open, status = "@@in_transaction", "information_schema.GLOBAL_STATUS"
	}
	f := newFacts(open)
	f.status = status
	f.name = state.vars["server_id"] + "/" + state.vars["server_uuid"] + state.vars["server_uid"]
	f.sync = mysqlconn.SyncOf(state.vars)
	f.galera = isGalera(state.vars)
	f.several, f.replicated = several, mysqlconn.IsOn(state.vars["log_bin"])
	f.agreed = state.cluster != ""
	return f, nil
}

// A serverState is a server's description of itself.
type serverState struct {
	conn driver.QueryerContext // on which it said so
	vars map[string]string

	// cluster names the servers that a commit is agreed upon with. In doubt it is
	// empty: then a change of servers is noticed, and costs but some IDs.
	cluster string
}

// with reports whether two writable servers are members of one cluster, or the same server. Only
// then does each know the other's commits. Only the same server knows a lock on the other
// connection; copied servers may have equal names.
func (s serverState) with(ctx context.Context, other serverState) (bool, error) {
	if s.cluster != "" || other.cluster != "" {
		return s.cluster == other.cluster, nil
	}
	lock := "'leaf " + rand.Text() + "'"
	if _, err := mysqlconn.Pairs(ctx, s.conn, `SELECT 'got', GET_LOCK(`+lock+`, 0)`); err != nil {
		return false, err
	}
	found, err := mysqlconn.Pairs(ctx, other.conn, `SELECT 'held', IF(IS_USED_LOCK(`+lock+`) IS NULL, 'OFF', 'ON')`)
	return mysqlconn.IsOn(found["held"]), err
}

// askServer asks a connection of the driver what its server is like, and fails if that
// cannot be written.
func askServer(ctx context.Context, conn any) (serverState, error) {
	vars, err := mysqlconn.Variables(ctx, conn, append([]string{"in_transaction", "server_id", "server_uuid", "server_uid",
		"wsrep_on", "wsrep_provider", "group_replication_group_name"}, mysqlconn.SyncVariables...)...)
	if err != nil {
		return serverState{}, err
	}
	q := conn.(driver.QueryerContext)
	state := serverState{conn: q, vars: vars}
	switch {
	case isGalera(vars):
		state.cluster, err = galeraCluster(ctx, q)
	case vars["group_replication_group_name"] != "":
		state.cluster, err = replicationGroup(ctx, q, vars["group_replication_group_name"])
	}
	return state, err
}

func galeraCluster(ctx context.Context, q driver.QueryerContext) (string, error) {
	status, err := mysqlconn.Pairs(ctx, q, `SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_state_uuid')`)
	if err != nil {
		return "", err
	}
	if err := galeraFault(status); err != nil {
		return "", err
	}
	return "galera " + status["wsrep_cluster_state_uuid"], nil
}

// errNotReady is a member of a cluster that does not take part in it.
var errNotReady = errors.New("the server takes no part in its cluster")

// galeraFault reports why a Galera node must not be used.
func galeraFault(status map[string]string) error {
	if mysqlconn.IsOn(status["wsrep_ready"]) && strings.EqualFold(status["wsrep_cluster_status"], "Primary") {
		return nil
	}
	return fmt.Errorf("%w (wsrep_ready=%s, wsrep_cluster_status=%s): wait until it has joined, or bring a majority of the nodes back",
		errNotReady, status["wsrep_ready"], status["wsrep_cluster_status"])
}

// groupMembers tells what this member and the majority are like.
const groupMembers = `SELECT 'state', member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid
	UNION ALL SELECT 'majority', IF(COUNT(*) = 0, '', IF(2 * SUM(member_state IN ('ONLINE', 'RECOVERING')) > COUNT(*), 'ON', 'OFF'))
		FROM performance_schema.replication_group_members`

func replicationGroup(ctx context.Context, q driver.QueryerContext, name string) (string, error) {
	members, err := mysqlconn.Pairs(ctx, q, groupMembers)
	if _, ok := errors.AsType[*gomysql.MySQLError](err); ok {
		return "", nil // not to be read by this user
	}
	if err != nil {
		return "", err
	}
	if members["majority"] == "" {
		return "", nil // performance_schema is off
	}
	if err := groupFault(members); err != nil {
		return "", err
	}
	return "group " + name, nil
}

// groupFault refuses a server with an unfit state in Group Replication.
func groupFault(members map[string]string) error {
	state := cmp.Or(members["state"], "OFFLINE")
	if state == "ONLINE" && mysqlconn.IsOn(members["majority"]) {
		return nil
	}
	return fmt.Errorf("%w (member_state=%s, majority=%s): START GROUP_REPLICATION, or bring a majority of the members back",
		errNotReady, state, members["majority"])
}

// isGalera reports whether the server replicates by Galera: wsrep_on alone does
// nothing without a provider.
func isGalera(vars map[string]string) bool {
	provider := vars["wsrep_provider"]
	return mysqlconn.IsOn(vars["wsrep_on"]) && provider != "" && !strings.EqualFold(provider, "none")
}
