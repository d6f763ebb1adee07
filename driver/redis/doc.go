// Package redis keeps tags and the records of workers in a Redis: in one server, in the primary
// that Sentinel names, or in a Redis Cluster, also over TLS. [Config].Client takes an existing
// client. [Open] neither connects nor creates anything; Init and InitRegistry of [kv.DB] create,
// and refuse existing keys. One prefix may hold both.
//
//	db, err := redis.Open(redis.Config{Addrs: []string{"h1:6379"}}, nil)
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # Keys
//
//	{PREFIX}:store       hash: the cells of the store, see package kv
//	{PREFIX}:registry    hash: the cells of the registry
//	{PREFIX}:timeline    in a cluster: the server of the keys, and the first server of their timeline
//
// The braces make a cluster keep all keys of a prefix in one slot, hence on one node, which answers
// all calls. Stores with different prefixes share the load. While a slot moves to another node,
// calls fail. Keys have no time to live; the driver refuses a key with one.
//
// # Calls
//
// Each call is a script, which the server runs as one step. The script first checks that it runs on
// the expected server. An Advance takes one trip, even if many servers want one counter: a script
// reads the cell, adds and writes. The client repeats a command only if the server did nothing. The
// outcome of a write with a lost answer is unknown: the range of such an Advance is lost. A Return
// goes only to the server of the grant. A server that took over or restarted refuses it, because it
// may have granted the same IDs to another client.
//
// If an answer takes a second or more, later calls get new connections: after an address has moved,
// all old connections are silent.
//
// # Server
//
// Redis 6.0 or newer (tested with 7.0), with a user such as
//
//	ACL SETUSER leaf on >PASSWORD ~{leaf}:* +@read +@write +@scripting +info +config|get +time +ping +select +wait +waitaof +cluster
//
// The client checks a server before its first call and once a minute. It refuses replicas, servers
// that may evict keys (maxmemory with a maxmemory-policy other than noeviction), and servers
// without an append-only file, because they forget at a restart. The URL parameter durability=none
// accepts the last kind.
//
// # Durability
//
// One server without replicas, with appendonly yes, appendfsync always and
// no-appendfsync-on-rewrite no, loses no acknowledged write as long as its disk keeps them.
// [segment.Grant].Server is then empty, and ServerEpoch of the registry reports a lossless server.
//
// Everything else may lose acknowledged writes:
//
//   - appendfsync everysec loses the last second or two if the machine crashes;
//   - a replica that takes over, by Sentinel, in a cluster, or by hand, lacks the writes that had
//     not reached it;
//   - an isolated primary continues to answer the clients that reach it until it learns of its
//     successor; set min-replicas-to-write and min-replicas-max-lag so that it stops;
//   - durability=none loses the writes since the last snapshot, or all of them.
//
// There, Server is the server's master_replid. Every restart of a primary and every takeover
// changes it, even on a former primary. So a node notices, and lifts the counter, once for each
// restart. In a cluster, Server is the master_replid of the first use of the keys. It stays when
// the slot moves, provided that a Leaf node looked at the servers within the two minutes before,
// and then sees that a live primary handed the keys to a known primary (a node without slots is not
// known). Otherwise the move counts as a takeover. The registry is lossy, and claims wait after
// such a change, in a cluster each time. Neither is proof, see packages segment and worker.
//
// With wait=N a write counts when N replicas have it, with waitaof=L,N (Redis 7.2) when the primary
// (L=1) and N replicas have it on disk. Until then the driver does not issue the range of an
// Advance; after wait_timeout it drops the range. That makes the loss of acknowledged writes
// unlikely, not impossible: the cluster may elect another replica. So the rest of this section
// still holds.
package redis
