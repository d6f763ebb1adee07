package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// A Server is one database that deals tickets.
type Server struct {
	// Name is the server's name in errors and the log, such as host:port/db without credentials.
	// It is unique in a set.
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
	gates  [64]sqlstore.Slots    // by the hash of a table of tickets
}

// gate returns the place of the one draw that this process makes from a table of tickets at a time.
// Draws from one table take turns on the server anyway, and there now and then wait for each other
// until it undoes one.
func (m *member) gate(table string) sqlstore.Slots {
	return m.gates[crc32.ChecksumIEEE([]byte(table))%uint32(len(m.gates))]
}

// isCalled reports whether name means the server: as it is, or its host, or its host and port.
func (m *member) isCalled(name string) bool {
	return m.Name == name || strings.HasPrefix(m.Name, name+":") || strings.HasPrefix(m.Name, name+"/")
}

// newMembers returns the servers, after a look at their names and number.
func newMembers(servers []Server) ([]*member, error) {
	if len(servers) < 1 || len(servers) > MaxServers {
		return nil, fmt.Errorf("%w: %d ticket servers", leaf.ErrInvalid, len(servers))
	}
	members := make([]*member, 0, len(servers))
	for _, server := range servers {
		switch {
		case server.DB == nil || server.Name == "":
			return nil, fmt.Errorf("%w: a ticket server has no database or no name", leaf.ErrInvalid)
		case slices.ContainsFunc(members, func(m *member) bool { return m.Name == server.Name }):
			return nil, fmt.Errorf("%w: server %s is named twice", leaf.ErrInvalid, server.Name)
		}
		m := &member{Server: server}
		for i := range m.gates {
			m.gates[i] = make(sqlstore.Slots, 1)
		}
		members = append(members, m)
	}
	return members, nil
}

// facts are the properties of a server that the store needs, most of them from its table leaf_ticket.
type facts struct {
	share
	state      string // empty: it has no such table
	cluster    string
	id         string // stays with the data
	generation int64
	members    []string // their ids, in the generation and in order
	open       string   // an expression that says whether a transaction is open
	sync       mysqlconn.Sync
	tables     sync.Map // checked tables of tickets
}

// read reads the table leaf_ticket, if the server has it.
func (f *facts) read(ctx context.Context, db sqlstore.Querier) error {
	var version int
	var members string
	err := db.QueryRowContext(ctx, `SELECT format, state, cluster, member, generation, servers, number, stride, table_per_tag, members
		FROM leaf_ticket WHERE one = 1`).Scan(&version, &f.state, &f.cluster, &f.id, &f.generation,
		&f.servers, &f.number, &f.Stride, &f.TablePerTag, &members)
	switch {
	case errors.Is(err, sql.ErrNoRows), mysqlconn.IsNumber(err, mysqlconn.NoTable):
		return nil
	case err == nil && version != format:
		return fmt.Errorf("%w: the tables have format %d, this release knows %d: upgrade Leaf", leaf.ErrUnsupported, version, format)
	}
	f.members = strings.Fields(members)
	return err
}

// fits reports why a server cannot be one of n in a set of that layout.
func (f *facts) fits(l Layout, n int64) error {
	switch {
	case f.state == "" || f.state == stateNew:
		return fmt.Errorf("%w, or %w: it has no table leaf_ticket, or one left half-way", segment.ErrNotCreated, segment.ErrNeedsResize)
	case f.state == stateRetired:
		return fmt.Errorf("%w: %w: the server was taken out of the set: remove it from the URL, or take it in again", leaf.ErrUnsupported,
			segment.ErrNeedsResize)
	case f.state != stateReady:
		return errResized
	case f.Layout != l:
		return fmt.Errorf("%w: the URL says %v, the server was set up for %v, which never changes: correct the URL", leaf.ErrInvalid, l, f.Layout)
	case f.servers != n:
		return fmt.Errorf("%w: the URL names %d servers, this one is number %d of %d: name all of them, or change their number: %w",
			leaf.ErrInvalid, n, f.number, f.servers, segment.ErrNeedsResize)
	case f.number < 1 || f.number > n || f.generation < 1:
		return fmt.Errorf("%w: its table leaf_ticket was changed by hand (number %d, generation %d)", leaf.ErrInvalid, f.number, f.generation)
	}
	return nil
}

// checkServer refuses an unfit session or server, and learns the server's properties.
func (f *facts) checkServer(ctx context.Context, conn *sql.Conn) error {
	if err := mysqlconn.CheckSession(ctx, conn, ""); err != nil {
		return err
	}
	var vars map[string]string
	err := conn.Raw(func(c any) (err error) {
		vars, err = mysqlconn.Variables(ctx, c, append([]string{"in_transaction", "version"}, mysqlconn.SyncVariables...)...)
		return err
	})
	if err != nil {
		return err
	}
	if losesCounters(vars["version"]) {
		return fmt.Errorf("%w: the server forgets in a restart which tickets it has dealt: MySQL 8.0 and MariaDB 10.3 do not", leaf.ErrUnsupported)
	}
	f.open, f.sync = "0", mysqlconn.SyncOf(vars)
	if _, ok := vars["in_transaction"]; ok { // MySQL has no way to ask
		f.open = "@@in_transaction"
	}
	return f.read(ctx, conn)
}

// losesCounters reports a version that keeps AUTO_INCREMENT in memory alone. At a start it takes
// the counter from the row of the last ticket, which may be too low: after two concurrent draws the
// lower one's row may have replaced the higher one's.
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

// checkTables refuses unfit tables.
func (f *facts) checkTables(ctx context.Context, conn *sql.Conn) error {
	for _, table := range []string{"leaf_ticket", "leaf_ticket_tag"} {
		if err := checkEngine(ctx, conn, table); err != nil {
			return err
		}
	}
	if f.shared() {
		return f.checkTickets(ctx, conn, sharedTable)
	}
	return nil
}

// checkTickets refuses a table that cannot issue tickets. At the end of a small column, REPLACE
// returns one number for ever: it replaces its own row.
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
	_, err := mysqlconn.CheckEngine(ctx, conn, table, "IDs")
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: the database has no table %s", segment.ErrNotCreated, table)
	}
	return err
}
