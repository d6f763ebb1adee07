// Package sqlite keeps tags in the table leaf_alloc of an SQLite file, and the records of workers
// in the table leaf_worker. The caller opens the database, with a database/sql driver of its
// choice. [New] neither reads nor creates anything; Init and InitRegistry of the [sqldb.DB] create,
// and refuse existing tables. One file may hold both.
//
//	db, err := sqlite.New(pool, nil) // pool is a *sql.DB
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # The file
//
// Durability: the store hands out a range after a COMMIT that SQLite has synced to disk. It sets
// synchronous=EXTRA, which is FULL plus a sync of the folder after the deletion of a journal. So
// neither a crash of the process nor of the machine issues an ID twice, provided that the disk
// keeps acknowledged writes. The file must be on a local file system. The journal is WAL: at the
// first use the store switches a file in another mode, such as a copy made by VACUUM INTO. It
// refuses journals in memory.
//
// The store notices a moved, removed or replaced file after the next COMMIT, before it answers, and
// after a second if it is idle. The answers are then errors. The same holds for the files next to
// it. Stop every server before you put a backup in place, and raise every counter afterwards.
// A database that came to its name is opened two seconds later (Linux), because its log may follow. One
// that follows even later replaces the log that the first server then begins, with all commits in it,
// or is removed by it: IDs come twice. A copy into the file under that name (cp) is not noticed.
//
// SQLite keeps the log and the locks in files next to the database's name. Processes with two names
// for one file do not see each other's commits. So the store refuses a file with several hard links
// and one that is a mount point itself (Linux), also if it becomes one later. Symbolic links and
// mounts of the folder are safe. Without these companions, the store opens a file only if no other
// process has it open. It learns that from SQLite's lock on the file itself, under any name and on
// any system. So a pragma that reads the file does not belong in the data source name: it would
// make companions before the store asks for that lock.
//
// Group commit: one goroutine owns one connection and serves all calls of the store. It collects
// the waiting calls, runs them in one BEGIN IMMEDIATE … COMMIT, and only then answers them. Its
// context is its own: a caller that leaves loses its IDs and disturbs no other call. After any
// error but an unknown tag or a full counter, the whole batch fails and hands out nothing. The
// goroutine closes a connection after a failure.
//
// Limits: several processes may share a file; each waits up to five seconds for the others. The
// file belongs to Leaf alone: its application_id and its user_version (the version of the table's
// format) are Leaf's, and the store refuses a newer format. It also refuses a damaged file: each
// new connection checks it first (8 ms for 20,000 tags). Listings read on connections of their own
// and hold up no other call, unless the pool is limited to one connection. The pool is the store's
// own: it keeps no idle connections from [New] on. Close the store before the database.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the record as text. A
// swap reads the text, compares the record, and sends one statement that replaces this text, byte
// for byte, or adds a missing row. It sends the statement once. Nothing deletes rows.
//
// The section on the file holds for a registry as well. Its clock is this machine's, and it loses
// no acknowledged write.
package sqlite
