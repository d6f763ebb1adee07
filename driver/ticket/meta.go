package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/segment"
)

// format is the version of the tables.
const format = 1

// The tables of each database, besides those of the tickets. A row of leaf_ticket_tag with
// generation 0 issues nothing: generations begin at 1. With blocks, next_id is the next ID of this
// server.
const (
	metaTable = `CREATE TABLE IF NOT EXISTS leaf_ticket (
	one           TINYINT NOT NULL PRIMARY KEY,
	format        INT NOT NULL,
	state         VARCHAR(16) CHARACTER SET ascii NOT NULL,
	cluster       CHAR(26) CHARACTER SET ascii NOT NULL,
	member        CHAR(26) CHARACTER SET ascii NOT NULL,
	generation    BIGINT NOT NULL,
	servers       BIGINT NOT NULL,
	number        BIGINT NOT NULL,
	stride        BIGINT NOT NULL,
	table_per_tag BOOLEAN NOT NULL,
	members       MEDIUMTEXT CHARACTER SET ascii NOT NULL
) ENGINE=InnoDB`

	tagTable = `CREATE TABLE IF NOT EXISTS leaf_ticket_tag (
	name        VARBINARY(512) NOT NULL PRIMARY KEY,
	generation  BIGINT NOT NULL,
	next_id     BIGINT NOT NULL,
	step        INT NOT NULL,
	description VARCHAR(256) CHARACTER SET utf8mb4 NOT NULL,
	updated     TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP
) ENGINE=InnoDB`

	// The ends of deleted tags. Other servers may still issue IDs of a deleted tag, so a new one
	// continues above them. The first Delete creates the table.
	deletedTable = `CREATE TABLE IF NOT EXISTS leaf_ticket_deleted (
	name    VARBINARY(512) NOT NULL PRIMARY KEY,
	next_id BIGINT NOT NULL
) ENGINE=InnoDB`

	ticketTable = "CREATE TABLE IF NOT EXISTS `%s` (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, stub CHAR(1) NOT NULL DEFAULT '', " +
		"PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB"
)

// The states of a server in its table leaf_ticket.
const (
	stateNew      = "new"      // its first Init or Resize is not through
	stateReady    = "ready"    // it issues
	stateResizing = "resizing" // it was stopped
	stateRetired  = "retired"  // it was taken out of the set
)

// facts are the properties of a server that the store needs, most of them from its table leaf_ticket.
type facts struct {
	share
	state      string // empty: it has no such table
	cluster    string
	id         string // stays with the data
	generation int64
	members    []string // their ids, in the generation and in order
	open       string   // an expression that says whether a transaction is open
	flush      string   // innodb_flush_log_at_trx_commit
	tables     sync.Map // checked tables of tickets
}

// read reads the table leaf_ticket, if the server has it.
func (f *facts) read(ctx context.Context, conn *sql.Conn) error {
	var version int
	var members string
	err := conn.QueryRowContext(ctx, `SELECT format, state, cluster, member, generation, servers, number, stride, table_per_tag, members
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
