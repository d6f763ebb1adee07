// Package sqlite keeps tags in the table leaf_alloc of an SQLite file, and the records of
// workers in the table leaf_worker. The database is opened by the caller, with the
// database/sql driver of the caller's choice. [New] neither reads nor creates anything; Init
// and InitRegistry of the [sqldb.DB] create, and refuse what exists. One file may hold both.
//
// # The file
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
// caller that leaves loses its IDs and disturbs no other call. If anything but an unknown
// tag or a full counter goes wrong, the whole batch fails and nothing of it is
// handed out. A connection after a failure is closed, never used again.
//
// Limits: several processes may share a file; each waits up to five seconds for
// the others. The file belongs to Leaf alone: its application_id and its
// user_version (the version of the table's format) are Leaf's, and a format newer
// than this package knows is refused. So is a file that is damaged: each connection
// looks through it first (8 ms for 20,000 tags). Listings read on connections of
// their own and hold up no other call, unless the pool is limited to one connection. The
// pool is the store's own: it keeps no idle connections from [New] on. Close
// the store before the database.
//
// # Workers
//
// A row of leaf_worker is one cell of a [worker.Registry]: the worker ID and the record
// as text. A swap reads the text, compares the record in it, and sends one statement that
// replaces that very text, byte for byte, or adds the row where there is none; it is never
// repeated. Rows are never deleted.
//
// All of what is said above on files, durability and locks holds for a registry as for a
// store. Its clock is this machine's, and it loses nothing that it has acknowledged.
package sqlite
