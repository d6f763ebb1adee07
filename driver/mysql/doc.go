// Package mysql keeps tags in the table leaf_alloc of a MySQL or MariaDB database, which is
// the very table of Java Leaf, and the records of workers in the table leaf_worker. The
// database is opened by the caller, with [OpenDB] or with github.com/go-sql-driver/mysql.
// [New] neither connects nor creates anything; Init and InitRegistry of the [sqldb.DB] create, and
// refuse what exists. One database may hold both.
//
// # Tags
//
// The row (biz_tag, max_id) means that [max_id-step, max_id) belongs to the
// caller that raised max_id by step. Java Leaf servers may use the same rows at the same time.
// Only biz_tag, max_id, step and update_time are touched, and description where
// there is such a column, so that other variants of the table work. A give-back needs
// update_time to have ON UPDATE CURRENT_TIMESTAMP, as it has in Java Leaf's table, and is
// refused otherwise.
//
// An Advance by n is one packet: an UPDATE that commits by itself and leaves the
// new max_id in LAST_INSERT_ID(), and a SELECT that fetches it together with the
// number of rows that the UPDATE has changed, because LAST_INSERT_ID() keeps its
// old value when that is none. The first ID is LAST_INSERT_ID() minus the n that
// was passed, never minus a step that was read.
//
// Each session must be strict, or an overflowing max_id is clamped and one range
// is dealt out for ever; it must commit by itself, with completion_type=0, or
// each COMMIT begins a transaction that takes in the next Advance; its character
// set must be utf8mb4. A store checks one session before its first use, and each Advance
// checks its own. [OpenDB] makes such a database of a plain DSN, and
// [Prepare] does it to a configuration of go-sql-driver/mysql, which takes
// multiStatements, interpolateParams, a strict sql_mode, autocommit,
// completion_type=0, utf8mb4 and time limits.
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
// # Servers
//
// [NewConnector] makes one pool of several servers, of which it uses the one that can be
// written. A call that the server has certainly undone in favour of others, a deadlock or
// a commit that a cluster did not certify, is sent again for up to five seconds; but a
// give-back and a swap never are.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the record
// as text. A swap reads the text, compares the record in it, and sends one statement that
// replaces that very text, byte for byte, or adds the row where there is none; it is never
// repeated. Rows are never deleted.
//
// The registry looks at the server, the table and the session as the store does, and with
// each call at read_only too, because a server that has become a replica lags. On Galera it
// waits until the node shows all that the cluster agreed upon; Group Replication with
// several primaries needs group_replication_consistency BEFORE or above for that. Its clock
// is the server's. It may lose what it has acknowledged unless commits are agreed upon, or
// the server keeps no binary log, so that no replica can take over, and
// innodb_flush_log_at_trx_commit is 1.
//
// The incarnation of the registry is the server's ID and UUID, its start, and how many
// statements have made it a replica, or ended that, since. Nothing tells of a fail-over that
// needs no such statement, so the reign is unmarked (worker.Reign).
//
// [Nodes] deals worker IDs from WORKER_NODE, the table of uid-generator, one for each start
// of a process. Leases, which use worker IDs again, are the better choice.
package mysql
