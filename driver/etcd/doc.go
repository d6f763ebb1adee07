// Package etcd keeps tags and the records of workers in etcd, the strongly consistent
// choice: a write is acknowledged when most members have it on disk, and is not lost
// with any minority of them. etcd 3.4 or later is needed. Opening a [Store] or a
// [Registry] neither connects nor creates anything; [Init] and [InitRegistry] create,
// and refuse what exists. One prefix may hold both.
//
// # Keys
//
//	PREFIX/alloc/TAG         a counter: {"v":1,"max_id":1,"step":1000,"description":"…","updated":ms}
//	PREFIX/late/TAG          a mark: processes want that counter at the same time; without content
//	PREFIX/workers/ID        the record of a worker
//	PREFIX/format/alloc      {"v":1}: there is a store
//	PREFIX/format/workers    {"v":1}: there is a registry
//
// A tag stands in its key as it is, slashes too. No key has a lease, and those of
// workers are never deleted. Every transaction also compares the marker in
// PREFIX/format, so that a mistyped prefix, or keys that somebody deleted, are an error
// and never a counter that starts again.
//
// A user of etcd needs to read and write PREFIX/:
//
//	etcdctl role grant-permission leaf --prefix=true readwrite /leaf/
//
// # Counters
//
// A counter is moved by one transaction that writes the new value if the key still
// has the revision, and the value, that were last seen. A revision never comes back,
// so of all transactions that name one at most one is carried out, however late: a
// transaction whose answer was lost can do no harm later. Its IDs are lost.
//
// All calls of one process for one tag share transactions: one goroutine at a time
// takes those that wait and moves the counter once, by what they want together. It
// goes by what its last transaction left, so that a counter that no other process
// wants costs one transaction and no read. Processes that want the same counter at
// the same time spread: one that came too late tries again at once, by what it was told,
// and then waits for a random time and reads anew. It also leaves a mark, in the same
// transaction, which the next to succeed takes away: from its version each of them knows
// how many came too late for that one move, and the waits grow and shrink by that, also
// of those who were faster, so that each gets its share.
//
// # Members
//
// A client stays with one member until that fails: when the connection breaks, when it
// is silent for a second (for longer, up to five, where all members are), or when it has
// no leader. The next call then goes to the next member. Reads, which the majority has
// to confirm, are repeated on each member in turn. Writes are sent once, and repeated by
// nobody: neither by this package nor by the client library, whose own repetitions are
// switched off.
//
// Before its first call a client asks all members which cluster they are of, and it
// compares that with every answer: members of two clusters, whose counters know nothing
// of each other, are refused, by both address and ID. Who cannot be reached at first is
// compared when it answers a call. A cluster that etcd was made to form anew out of one
// member's data (--force-new-cluster) keeps its ID, and is not told apart.
//
// Each allocation is a revision that etcd keeps until it is compacted. Start etcd with
// --auto-compaction-retention, or its database fills up (2 GiB by default) and refuses
// all writes.
//
// # Backups
//
// A cluster that is restored from a snapshot has lost what was written since. Stop
// every server first, and raise every counter afterwards. [segment.Grant].Server is the
// ID of the cluster, so that a node notices a restored one whose ID is new, and lifts
// the counters; one that is restored with the same members and token has the same ID.
//
// # Clock
//
// etcd tells no time. [Registry.Clock] is the Date of a member's HTTP server, in whole
// seconds.
package etcd
