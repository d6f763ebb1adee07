// Package sqldb keeps tags in the table leaf_alloc of an SQL database, and the
// records of workers in the table leaf_worker: in SQLite, in MySQL or MariaDB, there
// with the very table of tags of Java Leaf, and in PostgreSQL and what speaks its
// protocol. The database is opened by the caller, with the database/sql driver of the
// caller's choice for SQLite, with github.com/go-sql-driver/mysql for MySQL and with
// github.com/jackc/pgx/v5/stdlib for PostgreSQL. Opening a [Store] or a [Registry]
// neither connects nor creates anything; [InitSQLite], [InitSQLiteRegistry],
// [InitMySQL], [InitMySQLRegistry], [InitPostgres] and [InitPostgresRegistry] create,
// and refuse what exists. One database may hold both.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the
// record as text. A swap reads the text, compares the record in it, and sends one
// statement that replaces that very text, byte for byte, or adds the row where there
// is none; it is never repeated. Rows are never deleted.
//
// In SQLite all of what follows on files, durability and locks holds for a registry
// as for a store; its clock is this machine's, and it forgets nothing.
//
// In MySQL the registry looks at the server, the table and the session as the store
// does, and with each call at read_only too, because a server that has become a
// replica lags. On Galera it waits until the node shows all that the cluster agreed
// upon; Group Replication with several primaries needs group_replication_consistency
// BEFORE or above for that. Its clock is the server's. It may forget what it has
// acknowledged unless commits are agreed upon (below), or the server keeps no binary
// log, so that no replica can take over, and innodb_flush_log_at_trx_commit is 1.
//
// [NewMySQLConnector] makes one pool of several servers, of which it uses the one that
// can be written. A call that the server has certainly undone in favour of others, a
// deadlock or a commit that a cluster did not certify, is sent again for up to five
// seconds; but a give-back and a swap never are.
//
// In PostgreSQL each read says too whether the server is a standby by now, which lags.
// Its clock is the server's.
//
// # SQLite
//
// Durability: a range is handed out after a COMMIT that was synced to disk
// (synchronous=EXTRA, set by the store itself: FULL, and the folder too where a
// journal is deleted), so neither a crash of the process nor of the machine issues
// an ID twice, provided that the disk keeps what it acknowledged. The file must be
// on a local file system. The journal is WAL: a file in another mode, such as a copy
// made by VACUUM INTO, is switched at first use; journals in memory are refused.
//
// A file that is moved, removed or replaced while it is open is noticed after the
// next COMMIT and before its answers, which are errors; at the latest after a second.
// So is the removal of a file beside it. Stop every server before a backup is put in
// place, and raise every counter afterwards.
//
// SQLite keeps the log and the locks in files beside the database's name. Processes
// that come to one file under two names do not see each other's commits. Therefore a
// file with several hard links, and one that is a mount point itself (Linux), is
// refused, also when it becomes one later; symbolic links and mounts of the folder are
// safe. A file without these companions is opened only if no other process has it open.
// Whatever its name and whatever the system, SQLite's lock on the file itself tells.
// So a pragma that reads the file does not belong in the data source name: it would
// make companions before that lock is asked for.
//
// Group commit: one goroutine owns one connection and serves all calls of the
// store. It collects the calls that wait, runs them in one BEGIN IMMEDIATE …
// COMMIT, and only then answers them. It works under a context of its own: a
// caller that leaves loses its IDs and disturbs nobody. If anything but an unknown
// tag or a full counter goes wrong, the whole batch fails and nothing of it is
// handed out. A connection after a failure is closed, never used again.
//
// Limits: several processes may share a file; each waits up to five seconds for
// the others. The file belongs to Leaf alone: its application_id and its
// user_version (the version of the table's format) are Leaf's, and a format newer
// than this package knows is refused. So is a file that is damaged: each connection
// looks through it first (8 ms for 20,000 tags). Listings read on connections of
// their own and hold up nobody, unless the pool is limited to one connection. The
// pool is the store's own: it keeps no idle connections from [OpenSQLite] on. Close
// the store before the database.
//
// # MySQL and MariaDB
//
// The row (biz_tag, max_id) means that [max_id-step, max_id) belongs to whoever
// raised max_id by step. Java Leaf servers may use the same rows at the same time.
// Only biz_tag, max_id, step and update_time are touched, and description where
// there is such a column, so that other variants of the table work.
//
// An Advance by n is one packet: an UPDATE that commits by itself and leaves the
// new max_id in LAST_INSERT_ID(), and a SELECT that fetches it together with the
// number of rows that the UPDATE has changed, because LAST_INSERT_ID() keeps its
// old value when that is none. The first ID is LAST_INSERT_ID() minus the n that
// was passed, never minus a step that was read.
//
// Each session must be strict, or an overflowing max_id is clamped and one range
// is dealt out for ever; it must commit by itself; its character set must be
// utf8mb4. A store checks one session before its first use, and each Advance
// checks its own. [OpenMySQLDB] makes such a database of a plain DSN, and
// [PrepareMySQL] does it to a configuration of go-sql-driver/mysql, which takes
// multiStatements, interpolateParams, a strict sql_mode, autocommit, utf8mb4 and time
// limits.
//
// The pool must be the store's own. Into a transaction that other code left open on
// a connection an Advance would fall, and be undone with it; MariaDB says so, and the
// Advance fails, but MySQL cannot be asked.
//
// The time limits matter: a server that hangs without closing its connections
// would otherwise hold a call until its context ends.
//
// Names are compared byte for byte, whatever the collation of biz_tag. A collation
// that folds case, accents or trailing spaces still keeps two such names from
// existing side by side.
//
// Durability is that of the server: innodb_flush_log_at_trx_commit=1, without which
// a warning is logged at first use, and sync_binlog=1 where there are replicas. A
// replica that takes over after asynchronous or semi-synchronous replication may
// lack the last writes. Therefore [segment.Grant].Server is the server's server_id,
// which differs within one replication topology. On Galera, and on a member of Group
// Replication that performance_schema shows online, a commit is agreed upon first,
// and it is empty. A server that is read-only, a max_id that is not a signed BIGINT
// and a table without transactions are refused, at first use.
//
// # PostgreSQL, CockroachDB and YugabyteDB
//
// An Advance is one UPDATE … RETURNING that commits by itself, also by the tag's own
// step; it is answered only after its commit. A statement that the server undid in
// favour of others (40001, 40P01) is sent again, for up to five seconds. A Return and a
// Swap are sent once. [NewPostgresConnector] has connections given up together that have
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
// nobody can tell from the new primary. Therefore [segment.Grant].Server is the system
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
package sqldb
