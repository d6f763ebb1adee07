// Package zookeeper keeps tags and worker IDs in ZooKeeper, as a backend of package kv.
//
// There are two kinds of registry, which keep the workers' records alike. [Open] opens a
// store, and a pool of worker IDs that go from hand to hand. [OpenLeaf] takes part in the
// tree of Java Leaf, so that its servers and those of this program run side by side,
// under one name (leaf.name), without sharing a worker ID.
//
// # Nodes
//
// All are below /snowflake/NAME, persistent, and open to all, as Java Leaf's are:
//
//	tags/SHARD/TAG            a counter, percent-encoded; SHARD spreads the tags over 64 nodes
//	workers/SHARD/ID          the record of a worker; SHARD is ID/1024
//	format/tags, …/workers    there is a store, a registry
//	clock                     written to read the leading server's clock
//	forever/IP:PORT-NUMBER    Java Leaf's: one a server, whose worker ID is NUMBER
//	uploads/IP:PORT-NUMBER    which write to a node of forever was this program's
//
// Records are written with the version that was read, or created, and never deleted.
// Each read follows a sync, so that a follower does not serve what is out of date.
//
// # The connection
//
// Nothing here depends on a session: there is no ephemeral node. A session whose
// connection is lost is given up with whatever was under way, and the next call begins
// another one; so no write is sent later than its caller knows of, and a ZooKeeper that was
// restored from a backup is not an obstacle. A write is sent once: if its answer is lost, what
// it did is not known.
//
// [New] takes a connection that there is. Its session goes on after a loss, so a write that
// waited for it may be sent after its caller has left. That write compares what it replaces,
// and does no harm.
//
// # Java Leaf's tree
//
// A server of Java Leaf takes the number of the child that bears its address, adds a
// child if there is none, and from then on writes the time to it every 3 s, whatever
// other servers do. It looks at no lease. A [Leaf] therefore goes by these rules:
//
//   - A child has Java Leaf's name and its three fields, byte for byte, and nothing
//     else is put beside it: Java servers fail to start on what they do not know.
//   - Worker 0 is never used. Java servers that find no tree use it without a look at
//     the number of their child. A child of ours with that number is deleted, and
//     another one made.
//   - Of several children with our address the one with the highest number is ours.
//     A child with another address is never taken over, however old it is.
//   - A number that is in use in another name as well, as in a tree that was copied
//     from another ZooKeeper, is not used.
//   - A child that this program did not write last is taken over only after it had no
//     write for 10 s; until then a Java server with our address may run. Nor is it
//     taken over while the time in it, and 3 s more, are still to come.
//   - Uploads begin when the lease is held, and are written only if the child had no
//     other write meanwhile. So of two servers of this program with one address the
//     second does not disturb the first.
//   - A write of another server to our child, or its deletion, ends the worker ID:
//     watches fire, and calls fail with [worker.ErrTaken] until Assign finds a child anew.
//
// # What stays possible
//
// Java Leaf cannot be fenced. Worker IDs may still be used twice in these cases:
//
//   - A Java server is started with the address of a running server of this program:
//     it issues IDs from its start on, and writes for the first time a second later,
//     which is when this program hears of it; later, if this program is cut off from
//     ZooKeeper meanwhile, at most until its lease ends.
//   - A Java server with our address is paused, or cut off from ZooKeeper, for longer
//     than 10 s, and goes on afterwards: it does not notice that it was replaced.
//   - A Java server cannot reach ZooKeeper when it starts, or cannot read the tree, and
//     takes the number in its local file, which may be out of date.
//   - A Java server takes over the child of a server of this program: it knows no floor
//     but its clock. So a server of this program should not run ahead of the clock by
//     more than a second, and on its way out should wait until the clock has passed
//     what it issued ([worker.Options].Settle).
//   - Java servers that are started together on an empty tree all use worker 0. Start
//     one server of this program first: then they find a tree.
//   - Servers of a pool go on for as long as their leases last when a Java server is
//     started beside them: a pool looks for Java Leaf's nodes at the first use and
//     whenever a worker ID is claimed. End a pool before the first Java server starts.
package zookeeper
