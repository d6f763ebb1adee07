package ticket

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
