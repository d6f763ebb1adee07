// Package redis keeps tags and the records of workers in a Redis: in one server, in
// the primary that Sentinel names, or in a Redis Cluster, also over TLS.
// [Config].Client takes an existing client. [Open] neither connects nor creates anything;
// Init and InitRegistry of [kv.DB] create, and refuse what exists. One prefix may hold both.
//
// # Keys
//
//	{PREFIX}:store       hash: the cells of the store, see package kv
//	{PREFIX}:registry    hash: the cells of the registry
//	{PREFIX}:timeline    in a cluster: which server has the keys, and since which one none lost writes
//
// The braces have a cluster keep all keys of a prefix in one slot, hence on one node,
// which answers all calls; give stores that are to share the load prefixes of their
// own. While a slot moves to another node calls fail. Keys have no time to live, and
// one that was given one is refused.
//
// # Calls
//
// Each call is a script, which the server runs as one step, and which begins by making
// sure that it runs on the server that was looked at. An Advance is one trip, also where
// many servers want one counter: a script reads the cell, adds and writes. What was sent is
// not sent again, unless the server has said that it did nothing. A write whose answer is
// lost is in an unknown state: the range of an Advance is lost then. A Return is sent only to the server that made
// the grant: one that has taken over, or started again, refuses it, because it may have
// granted the same IDs to another client.
//
// When an answer does not come for a second or more, the calls after it have new
// connections: where an address has moved, all that stand have fallen silent.
//
// # Server
//
// Redis 6.0 or newer (tested with 7.0), and of its user
//
//	ACL SETUSER leaf on >PASSWORD ~{leaf}:* +@read +@write +@scripting +info +config|get +time +ping +select +wait +waitaof +cluster
//
// A server is looked at before its first call and once a minute. Refused are replicas,
// servers that may evict keys (maxmemory with a maxmemory-policy other than
// noeviction), and servers without an append-only file, whose restart forgets, unless
// the URL says durability=none.
//
// # What is kept
//
// One server that no replica may take over from, with appendonly yes, appendfsync
// always and no-appendfsync-on-rewrite no, loses nothing that it has acknowledged, as
// long as its disk keeps what it acknowledged. [segment.Grant].Server is empty then,
// and Reign of the registry says that nothing is lost.
//
// Everything else may lose writes that were acknowledged:
//
//   - appendfsync everysec loses the last second or two when the machine crashes;
//   - a replica that takes over, by Sentinel, in a cluster, or by hand, lacks what had
//     not reached it;
//   - a primary that was cut off goes on answering the clients that reach it until it learns of
//     its successor; set min-replicas-to-write and min-replicas-max-lag so that it stops;
//   - durability=none loses what came after the last snapshot, or everything.
//
// There Server is the server's master_replid, which every restart of a primary and
// every takeover changes, also that of a server which was the primary once before. So
// a node notices, and lifts the counter, once for each restart. In a cluster it is the one
// under which the keys were first used: it stays when their slot is moved, as long as some
// node of Leaf's looked at the servers within two minutes before and sees then that the
// keys were handed over by a primary that stands, to one that stood before (a node that had
// no slot until then was not seen). Else the move counts as a takeover. The registry is
// lossy, and claims wait after such a change, in a cluster each. Neither is proof, see packages segment and worker.
//
// With wait=N a write counts only when N replicas have it, with waitaof=L,N (Redis 7.2)
// when the primary (L=1) and N replicas have it on disk; until then the range of an Advance is
// not issued, and if it takes longer than wait_timeout it is lost. That makes the loss
// of acknowledged writes unlikely, not impossible: the replica that is elected need not be
// one of those. So the above stays as it is.
package redis
