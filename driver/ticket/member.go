package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A Server is one database that deals tickets.
type Server struct {
	// Name stands for it in errors and the log, such as host:port/db without credentials.
	// No two servers of a set have the same.
	Name string

	// DB is a pool as the package documentation asks for. It is the caller's to
	// close, after the store.
	DB *sql.DB
}

// A member is a server as the store uses it.
type member struct {
	Server
	health health
	facts  atomic.Pointer[facts] // nil until the server was found fit
	gates  [64]chan struct{}     // of one place each, by the hash of a table of tickets
}

// pass waits until this process draws no other ticket from a table, and returns how to
// let the next one in. Draws from one table take turns on the server anyway, and there
// now and then wait for each other until it undoes one.
func (m *member) pass(ctx context.Context, table string) (leave func(), err error) {
	gate := m.gates[crc32.ChecksumIEEE([]byte(table))%uint32(len(m.gates))]
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other draws from %s: %w", table, ctx.Err())
	}
}

// isCalled reports whether name means the server: as it is, or its host, or its host and
// port.
func (m *member) isCalled(name string) bool {
	return m.Name == name || strings.HasPrefix(m.Name, name+":") || strings.HasPrefix(m.Name, name+"/")
}

// facts is what the store needs to know of a server.
type facts struct {
	*meta
	open   string   // an expression that says whether a transaction is open
	flush  string   // innodb_flush_log_at_trx_commit
	tables sync.Map // of tickets, that were found fit
}

// newMembers returns the servers, after a look at their names and number.
func newMembers(servers []Server) ([]*member, error) {
	if len(servers) < 1 || len(servers) > MaxServers {
		return nil, fmt.Errorf("%w: %d ticket servers", leaf.ErrInvalid, len(servers))
	}
	seen := make(map[string]bool)
	members := make([]*member, 0, len(servers))
	for _, server := range servers {
		switch {
		case server.DB == nil || server.Name == "":
			return nil, fmt.Errorf("%w: a ticket server has no database or no name", leaf.ErrInvalid)
		case seen[server.Name]:
			return nil, fmt.Errorf("%w: server %s is named twice", leaf.ErrInvalid, server.Name)
		}
		seen[server.Name] = true
		m := &member{Server: server}
		for i := range m.gates {
			m.gates[i] = make(chan struct{}, 1)
		}
		members = append(members, m)
	}
	return members, nil
}

// within runs do on one connection, which is given up where it must not be used again.
func (m *member) within(ctx context.Context, do func(*sql.Conn) error) error {
	conn, err := m.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = do(conn)
	if errors.Is(err, errSession) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // that is how a pool is told
	}
	return err
}

// checkSession reports why a connection cannot be used.
func checkSession(ctx context.Context, conn *sql.Conn) error {
	var one int
	var charset string
	err := conn.QueryRowContext(ctx, `SELECT ?, @@character_set_client; SELECT 1`, 1).Scan(&one, &charset)
	switch {
	case isMySQL(err, mysqlSyntax):
		return fmt.Errorf("%w: open the database with multiStatements and interpolateParams: %w", errSession, err)
	case err != nil:
		return err
	case !strings.EqualFold(charset, "utf8mb4"):
		return fmt.Errorf("%w: its character set is %s: open the database with charset=utf8mb4", errSession, charset)
	}
	return nil
}

// checkServer reports why a server cannot be used, and learns what it is like.
func (f *facts) checkServer(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, `SHOW VARIABLES WHERE Variable_name IN
		('read_only', 'super_read_only', 'innodb_read_only', 'innodb_flush_log_at_trx_commit', 'in_transaction', 'version')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	f.open = "0" // MySQL has no way to ask
	old := false
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		switch name = strings.ToLower(name); {
		case name == "innodb_flush_log_at_trx_commit":
			f.flush = value
		case name == "version":
			old = losesCounters(value)
		case name == "in_transaction":
			f.open = "@@in_transaction"
		case !strings.EqualFold(value, "OFF") && value != "0":
			return fmt.Errorf("the server is read-only (%s=%s): each server of a ticket URL must be a primary", name, value)
		}
	}
	if old {
		return fmt.Errorf("%w: the server forgets in a restart which tickets it has dealt: MySQL 8.0 and MariaDB 10.3 do not", leaf.ErrUnsupported)
	}
	return rows.Err()
}

// losesCounters reports a version that keeps AUTO_INCREMENT in memory alone. What it computes
// anew from the row of the last ticket may be too low: of two drawn at once the lower
// one's row may have taken the place of the higher one's.
func losesCounters(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	if strings.Contains(version, "MariaDB") {
		return major < 10 || major == 10 && minor < 3
	}
	return major < 8
}

// checkTables reports why tables that are there already cannot be used.
func (f *facts) checkTables(ctx context.Context, conn *sql.Conn, l Layout, tables ...string) error {
	for _, table := range tables {
		if err := checkEngine(ctx, conn, table); err != nil {
			return err
		}
	}
	if l.shared() {
		return f.checkTickets(ctx, conn, sharedTable)
	}
	return nil
}

// checkTickets reports why a table cannot deal tickets. REPLACE at the end of a column
// that is too small deals one number for ever: it takes the place of its own row.
func (f *facts) checkTickets(ctx context.Context, conn *sql.Conn, table string) error {
	if _, ok := f.tables.Load(table); ok {
		return nil
	}
	if err := checkEngine(ctx, conn, table); err != nil {
		return err
	}
	var kind, key, extra, unique string
	err := conn.QueryRowContext(ctx, `SELECT LOWER(i.column_type), i.column_key, LOWER(i.extra), s.column_key
		FROM information_schema.columns AS i JOIN information_schema.columns AS s USING (table_schema, table_name)
		WHERE i.table_schema = DATABASE() AND i.table_name = ? AND i.column_name = 'id' AND s.column_name = 'stub'`, table).
		Scan(&kind, &key, &extra, &unique)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: the table %s must have the columns id and stub", leaf.ErrUnsupported, table)
	case err != nil:
		return err
	case !strings.HasPrefix(kind, "bigint"), key != "PRI", !strings.Contains(extra, "auto_increment"), unique != "UNI":
		return fmt.Errorf("%w: the table %s must have id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT as its primary key and a unique key on stub; "+
			"id is %s", leaf.ErrUnsupported, table, kind)
	}
	f.tables.Store(table, true)
	return nil
}

func checkEngine(ctx context.Context, conn *sql.Conn, table string) error {
	var engine, transactions sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT t.engine, e.transactions
		FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
		WHERE t.table_schema = DATABASE() AND t.table_name = ?`, table).Scan(&engine, &transactions)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: the database has no table %s", segment.ErrNotCreated, table)
	case err != nil:
		return err
	case transactions.V != "YES":
		return fmt.Errorf("%w: the engine %s of the table %s has no transactions and loses IDs in a crash: ALTER TABLE %s ENGINE=InnoDB",
			leaf.ErrUnsupported, engine.V, table, table)
	}
	return nil
}
