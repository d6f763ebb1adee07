// Package sqldb keeps tags in the table leaf_alloc of an SQL database, and the
// records of workers in the table leaf_worker: in SQLite, and in MySQL or MariaDB,
// there with the very table of tags of Java Leaf. The database is opened by the
// caller, with the database/sql driver of the caller's choice for SQLite and with
// github.com/go-sql-driver/mysql for MySQL. Opening a [Store] or a [Registry] neither
// connects nor creates anything; [InitSQLite], [InitSQLiteRegistry], [InitMySQL] and
// [InitMySQLRegistry] create, and refuse what exists. One database may hold both.
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
// next COMMIT and before its answers, which are errors. Stop every server before a
// backup is put in place, and raise every counter afterwards.
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
// checks its own. With go-sql-driver/mysql that means
//
//	cfg := mysql.NewConfig()
//	cfg.MultiStatements = true
//	cfg.InterpolateParams = true
//	cfg.Params = map[string]string{"sql_mode": "'STRICT_ALL_TABLES'", "autocommit": "1"}
//	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = 5*time.Second, 5*time.Second, 5*time.Second
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
package sqldb
