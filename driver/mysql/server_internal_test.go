package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/internal/mysqlconn"
)

// What may be sent again, and what says that a server is of no use any more.
func TestMySQLErrorKinds(t *testing.T) {
	number := func(n uint16, message string) error {
		return fmt.Errorf("commit: %w", &gomysql.MySQLError{Number: n, Message: message})
	}
	tests := map[string]struct {
		err         error
		undo, fails bool
	}{
		"none":                   {nil, false, false},
		"deadlock":               {number(1213, "Deadlock found"), true, false},
		"not certified":          {number(3101, "Plugin instructed the server to rollback"), true, false},
		"not certified, 5.7":     {number(1180, "Got error 149 during COMMIT"), true, false},
		"not certified, 8":       {number(1180, "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"), true, false},
		"cut off in the commit":  {number(1180, "Got error 6 \"No such device or address\" during COMMIT"), false, false},
		"disk in the commit":     {number(1180, "Got error 1490 during COMMIT"), false, false},
		"lock held":              {number(1205, "Lock wait timeout exceeded"), false, false},
		"galera node cut off":    {number(1047, "WSREP has not yet prepared node for application use"), false, true},
		"read-only":              {number(1290, "The server is running with --read-only"), false, true},
		"read-only, transaction": {number(1792, ""), false, true},
		"read-only, group":       {number(1836, ""), false, true},
		"read-only, seen":        {mysqlconn.ReadOnly("read_only", "ON"), false, true},
		"stopping":               {number(1053, ""), false, true},
		"connection lost":        {gomysql.ErrInvalidConn, false, true},
		"connection bad":         {driver.ErrBadConn, false, true},
		"no answer":              {context.DeadlineExceeded, false, true},
		"caller left":            {context.Canceled, false, false},
		"no row":                 {errors.New("x"), false, false},
	}
	for name, tt := range tests {
		if got := undone(tt.err); got != tt.undo {
			t.Errorf("%s: undone %v", name, got)
		}
		if got := serverFailed(tt.err); got != tt.fails {
			t.Errorf("%s: fails %v", name, got)
		}
	}
}

func TestClusterFaults(t *testing.T) {
	galera := func(ready, status string) error {
		return galeraFault(map[string]string{"wsrep_ready": ready, "wsrep_cluster_status": status})
	}
	group := func(state, majority string) error {
		return groupFault(map[string]string{"state": state, "majority": majority})
	}
	for name, tt := range map[string]struct {
		err  error
		fits bool
	}{
		"galera":              {galera("ON", "Primary"), true},
		"galera, minority":    {galera("OFF", "non-Primary"), false},
		"galera, joining":     {galera("OFF", "Primary"), false},
		"galera, no status":   {galera("", ""), false},
		"group":               {group("ONLINE", "ON"), true},
		"group, minority":     {group("ONLINE", "OFF"), false},
		"group, recovering":   {group("RECOVERING", "ON"), false},
		"group, expelled":     {group("ERROR", "OFF"), false},
		"group, not a member": {group("", "OFF"), false},
	} {
		if (tt.err == nil) != tt.fits || !tt.fits && !errors.Is(tt.err, errNotReady) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
}

// Which members of clusters may be written side by side.
func TestServersSideBySide(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string
		want bool
	}{
		"one cluster":            {"galera x", "galera x", true},
		"two clusters":           {"galera x", "galera y", false},
		"a cluster and a server": {"galera x", "", false},
	} {
		a, b := serverState{cluster: tt.a}, serverState{cluster: tt.b}
		for _, pair := range [][2]serverState{{a, b}, {b, a}} {
			if got, err := pair[0].with(t.Context(), pair[1]); err != nil || got != tt.want {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}
