// Package zookeeper keeps tags and worker IDs in ZooKeeper, as a backend of package kv.
//
//	db, err := zookeeper.Open([]string{"h1:2181", "h2:2181"}, nil)
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// It has two kinds of registry with the same records. [Open] opens a store, and a pool of worker
// IDs for any server. [OpenLeaf] takes part in the tree of Java Leaf: Java servers and those of
// this program run side by side under one name (leaf.name), without a common worker ID.
//
// # Nodes
//
// All are below /snowflake/NAME, persistent, and open to all, as Java Leaf's are:
//
//	tags/SHARD/TAG            a counter, percent-encoded; SHARD spreads the tags over 64 nodes
//	workers/SHARD/ID          the record of a worker; SHARD is ID/1024
//	format/tags, …/workers    markers of a store and a registry
//	clock                     written to read the leading server's clock
//	forever/IP:PORT-NUMBER    Java Leaf's: one a server, with the worker ID NUMBER
//	uploads/IP:PORT-NUMBER    this program's last write to a node of forever
//
// A write of a record names the version that it replaces, or creates the record. Nothing deletes
// records. Each read follows a sync, so that a follower does not return old data.
//
// # The connection
//
// The package uses no ephemeral node, so nothing depends on a session. After the loss of a
// connection it gives up the session with all pending calls, and the next call begins another one.
// So it sends no write after its caller has left, and a restored ZooKeeper is no obstacle. It sends
// a write once: the outcome of a write with a lost answer is unknown.
//
// [New] takes an existing connection. Its session outlives a loss, so a waiting write may leave
// after its caller. That write compares and does no harm.
//
// # Java Leaf's tree
//
// A server of Java Leaf takes the number of the child with its address, or adds a child. From then
// on it writes the time to it every 3 s, regardless of other servers. It reads no lease. So a
// [Leaf] follows these rules:
//
//   - A child has Java Leaf's name and its three fields, byte for byte, and no sibling of another
//     kind: Java servers fail to start on unknown data.
//   - Nobody uses worker 0. Java servers without a tree use it, whatever the number of their child.
//     A Leaf deletes a child of ours with that number, and makes another one.
//   - Of several children with our address the one with the highest number is ours. A Leaf never
//     takes over a child with another address, however old.
//   - A Leaf does not use a number that another name has too, as in a tree copied from another
//     ZooKeeper.
//   - If another program wrote a child last, a Leaf takes it over only after 10 s without a write:
//     until then a Java server with our address may run. It also waits until 3 s after the time in
//     the child.
//   - Uploads begin with the lease, and succeed only without any other write to the child. So of
//     two servers of this program with one address the second does not disturb the first.
//   - A foreign write to our child, or its deletion, ends the worker ID: watches fire, and calls
//     fail with [worker.ErrTaken] until Assign finds a child again.
//
// # Remaining risks
//
// Java Leaf has no fence. In these cases servers may still share a worker ID:
//
//   - Somebody starts a Java server with the address of a running server of this program. It issues
//     IDs at once and writes for the first time a second later, when this program hears of it. If
//     this program is cut off from ZooKeeper meanwhile, it hears later, at most at the end of its
//     lease.
//   - A Java server with our address pauses, or is cut off from ZooKeeper, for longer than 10 s,
//     and then continues: it does not notice its replacement.
//   - A Java server cannot reach ZooKeeper when it starts, or cannot read the tree, and takes the
//     number in its local file, which may be old.
//   - A Java server takes over the child of a server of this program: its only floor is its clock.
//     So a server of this program should not run ahead of the clock by more than a second, and
//     before it ends should wait until the clock has passed its last ID ([worker.Options].Settle).
//   - Java servers that start together on an empty tree all use worker 0. Start one server of this
//     program first: it makes the tree.
//   - When the first Java server starts, servers with a pool continue until their leases end: a
//     pool looks for Java Leaf's nodes at the first use and at each claim. End a pool before.
package zookeeper
