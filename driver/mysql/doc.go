// Package mysql keeps tags in the table leaf_alloc of a MySQL or MariaDB database, which is Java
// Leaf's own table, and the records of workers in the table leaf_worker. The caller opens the
// database, with [OpenDB] or with github.com/go-sql-driver/mysql. [New] neither connects nor
// creates anything; Init and InitRegistry of the [sqldb.DB] create, and refuse existing tables. One
// database may hold both.
//
//	db, err := mysql.New(pool, nil) // pool, err := mysql.OpenDB(dsn)
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # Tags
//
// The row (biz_tag, max_id) means that [max_id-step, max_id) belongs to the caller that raised
// max_id by step. Java Leaf servers may use the same rows at the same time. The store touches only
// biz_tag, max_id, step and update_time, and a column description if present, so other variants of
// the table work. A give-back needs ON UPDATE CURRENT_TIMESTAMP on update_time, as in Java Leaf's
// table; otherwise the store refuses it.
//
// An Advance by n is one packet. An UPDATE commits by itself and leaves the new max_id in
// LAST_INSERT_ID(). A SELECT fetches it together with the number of changed rows, because
// LAST_INSERT_ID() keeps its old value if the UPDATE changed no row. The first ID is
// LAST_INSERT_ID() minus the given n, never minus a step from a read.
//
// Each session must be strict: otherwise the server clamps an overflowing max_id and grants one
// range for ever. It must commit by itself, with completion_type=0: otherwise each COMMIT begins a
// transaction that includes the next Advance. Its character set must be utf8mb4. A store checks one
// session before its first use, and each Advance checks its own. [OpenDB] makes such a database
// from a plain DSN. [Prepare] adapts a configuration of go-sql-driver/mysql: multiStatements,
// interpolateParams, a strict sql_mode, autocommit, completion_type=0, utf8mb4 and time limits.
//
// The pool must be the store's own. If other code leaves a transaction open on a connection, the
// next Advance becomes part of it, and is undone with it. MariaDB reports the transaction, and the
// Advance fails; MySQL does not.
//
// The time limits matter: a server that hangs without closing its connections would otherwise hold
// a call until its context ends.
//
// The store compares names byte for byte, under every collation of biz_tag. A collation that folds
// case, accents or trailing spaces still forbids two such names next to each other.
//
// The server decides the durability. innodb_flush_log_at_trx_commit must be 1, or MariaDB's 3, and
// at 1 sync_binlog, too, if the server has a binary log: after a power cut the server undoes all
// commits that this log lacks. Otherwise the store logs a warning at the first use. After
// asynchronous or semi-synchronous replication a promoted replica may lack the last writes. Therefore
// [segment.Grant].Server is the server_id, which differs within one replication topology. Galera,
// and Group Replication with an online member in performance_schema, agree on a commit first:
// Server is then empty. At the first use the store refuses a read-only server, a max_id of another
// type than signed BIGINT, and a table without transactions.
//
// # Servers
//
// [NewConnector] makes one pool of several servers and uses the writable one. If the server
// certainly undid a call in favour of others, by a deadlock or a failed certification, the store
// repeats it for up to five seconds. It never repeats a give-back or a swap.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the record as text. A
// swap reads the text, compares the record, and sends one statement that replaces this text, byte
// for byte, or adds a missing row. It sends the statement once. Nothing deletes rows.
//
// The registry checks the server, the table and the session as the store does, and read_only with
// each call, because a server that became a replica lags. On Galera it waits until the node shows
// all agreed commits; Group Replication with several primaries needs group_replication_consistency
// BEFORE or above for that. Its clock is the server's. It may lose acknowledged writes, unless
// commits are agreed, or the server has no binary log, so that no replica can take over, and
// innodb_flush_log_at_trx_commit is 1 or 3.
//
// The incarnation of the registry is the server's ID and UUID, its start, and the number of
// statements since then that made it a replica or ended that. A fail-over without such a statement
// leaves no mark, so the epoch is untracked (worker.ServerEpoch).
//
// [Nodes] deals worker IDs from WORKER_NODE, the table of uid-generator, one for each start of a
// process. Leases reuse worker IDs and are the better choice.
package mysql
