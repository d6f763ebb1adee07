// Package etcd is a backend of package kv in etcd, the strongly consistent choice: a write
// is acknowledged when most members have it on disk, and is not lost with any minority of
// them. etcd 3.4 or later is needed.
//
//	db, err := etcd.Open([]string{"h1:2379", "h2:2379"}, nil)
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # Keys
//
// Each cell is the key PREFIX/CELL, such as /leaf/tags/order. A tag stands in its key as it
// is, slashes too. No key has a lease. A user of etcd needs to read and write PREFIX/:
//
//	etcdctl role grant-permission leaf --prefix=true readwrite /leaf/
//
// The version of a cell is the revision of its last write. A swap is one transaction that compares
// the revision and the value: a revision comes back when the cluster is restored from a backup.
//
// # Members
//
// [Open] makes a client that stays with one member until that fails: when the connection
// breaks, when it is silent for a second (for longer, up to five, where all members are), or
// when it has no leader. The next call then goes to the next member: under a balancer that
// goes round, each third call would wait for a frozen one. Reads, which the majority has to
// confirm, are repeated on each member in turn. Writes are sent once: neither this package
// nor the client library repeats them. [New] takes a client that there is.
//
// Before its first call a client asks all members which cluster they are of, and it
// compares that with every answer: members of two clusters, whose counters know nothing
// of each other, are refused, by both address and ID. A member that cannot be reached at
// first is compared when it answers a call. A cluster that etcd was made to form anew out
// of one member's data (--force-new-cluster) keeps its ID, and is not told apart.
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
// A restore under running processes is noticed by the revision. An answer has at least the
// revision of every answer that came before its call was sent, whichever members gave them,
// because each is a transaction that the majority confirms. One with a lower revision shows
// that etcd has lost writes: that is logged as an error, and from then on the registry is one
// that may lose writes ([worker.LossyRegistry]), so that this process's claims wait until
// holders that etcd does not know of any more have noticed. A holder reads its record each
// second, and puts it back or stops. A process that is started after the restore, or that etcd has
// answered last at a revision which it has reached again, cannot notice, and may claim a
// worker ID whose holder goes on for up to a second.
//
// # Clock
//
// etcd tells no time. The registry's clock is the Date of a member's HTTP server, in whole seconds.
package etcd
