// Package postgres keeps tags in the table leaf_alloc of a PostgreSQL database, or of one with the
// same protocol, and the records of workers in the table leaf_worker. The caller opens the
// database, with github.com/jackc/pgx/v5/stdlib. [New] neither connects nor creates anything; Init
// and InitRegistry of the [sqldb.DB] create, and refuse existing tables. One database may hold
// both.
//
//	db, err := postgres.New(pool, nil) // pool is a *sql.DB
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # Tags
//
// An Advance is one UPDATE … RETURNING that commits by itself, also by the tag's own step. The
// server answers after the commit. If the server undid a statement in favour of others (40001,
// 40P01), the store repeats it for up to five seconds. It sends a Return and a Swap once.
// [NewConnector] gives up all connections together after one has fallen silent. Every call ends
// within four seconds: the protocol has no limit for a single statement.
//
// The oldest supported release is PostgreSQL 12. The encoding of the database is UTF8. Nothing
// outlives a transaction, neither a prepared statement, whatever the pool's own mode, nor a
// setting. So PgBouncer with pool_mode=transaction may stand between. The store therefore checks
// the settings of a session and does not change them. It refuses synchronous_commit=off, with which
// a crash takes back the latest commits, at the first use and in each statement that writes: a
// role, a database, or another user of a pooler may set it. Local and remote levels count as on.
//
// fsync=off and full_page_writes=off are the server's own settings; the store logs a warning at the
// first use. It refuses a standby, a max_id of another type than bigint, names that do not compare
// byte for byte, and an unlogged or temporary table.
//
// A promoted standby may lack the last writes, unless it was synchronous, which the new primary
// does not show. Therefore [segment.Grant].Server is the system identifier of the cluster and its
// timeline, which changes with each promotion; all users may read both. For the same reason the
// registry reports possible losses, unless the server syncs and can have no standby at all:
// wal_level=minimal, or max_wal_senders=0 with archive_mode=off. A missing standby proves nothing:
// it may connect later. A fleet that promotes only synchronous standbys loses nothing, although the
// registry says that it may.
//
// CockroachDB and YugabyteDB agree on a commit first: Server is empty, and the registry reports a
// lossless server. The store recognises them by version(); the tests do not cover them.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the record as text. A
// swap reads the text, compares the record, and sends one statement that replaces this text, byte
// for byte, or adds a missing row. It sends the statement once. Nothing deletes rows.
//
// The incarnation of the registry is Server and the start of the server. If the user may not read
// Server, the incarnation is unknown and each claim waits.
//
// Each read also reports whether the server has become a standby, which lags. The clock is the
// server's.
package postgres
