// Package postgres keeps tags in the table leaf_alloc of a PostgreSQL database, or of one
// that speaks its protocol, and the records of workers in the table leaf_worker. The
// database is opened by the caller, with github.com/jackc/pgx/v5/stdlib. [New] neither
// connects nor creates anything; Init and InitRegistry of the [sqldb.DB] create, and refuse what
// exists. One database may hold both.
//
// # Tags
//
// An Advance is one UPDATE … RETURNING that commits by itself, also by the tag's own
// step; it is answered only after its commit. A statement that the server undid in
// favour of others (40001, 40P01) is sent again, for up to five seconds. A Return and a
// Swap are sent once. [NewConnector] has connections given up together that have
// fallen silent. Every call ends within four seconds: the
// protocol knows no limit that could be set for one statement.
//
// PostgreSQL 12 is the oldest release that is supported. The database is encoded in
// UTF8. Nothing outlives a transaction, neither a prepared statement, whatever the
// pool's own mode is, nor a setting, so that PgBouncer may stand in between, with
// pool_mode=transaction. What a store needs of a session it therefore checks and does
// not set. synchronous_commit=off, with which a crash takes back the commits of the
// last moments, is refused at first use, and by each statement that writes: a role, a
// database, and behind a pooler a stranger may set it. Local and remote levels count
// as on.
//
// fsync=off and full_page_writes=off are the server's own settings; a warning is
// logged at first use. A standby, a max_id that is not a bigint, names that do not
// compare byte for byte, and a table that is unlogged or temporary are refused.
//
// A standby that takes over may lack the last writes, unless it was synchronous, which
// cannot be told from the new primary. Therefore [segment.Grant].Server is the system
// identifier of the cluster and its timeline, which changes with each promotion; all
// users may ask for both. For the same reason the registry may forget, unless the
// server can have no standby at all: wal_level=minimal, or max_wal_senders=0 with
// archive_mode=off; and it syncs. That no standby is connected at this moment says
// nothing. Where only synchronous standbys are ever promoted, nothing is forgotten
// although the registry says that it may be.
//
// CockroachDB and YugabyteDB agree upon a commit first: Server is empty, and the
// registry forgets nothing. They are told by version(); this package is not tested
// with them.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the record
// as text. A swap reads the text, compares the record in it, and sends one statement that
// replaces that very text, byte for byte, or adds the row where there is none; it is never
// repeated. Rows are never deleted.
//
// The incarnation of the registry is Server and the start of the server. Where the user may not
// ask for Server none is known, and each claim waits.
//
// Each read says too whether the server is a standby by now, which lags. The clock is the
// server's.
package postgres
