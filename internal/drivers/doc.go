// Package drivers turns URLs into backends: stores of tags, registries of worker IDs, or
// both. It holds the one table of drivers; no other package but a driver itself knows a
// database. The URLs:
//
//	sqlite:PATH                                   a file on this machine
//	mysql://user:password@host:3306/db?tls=true   MySQL or MariaDB
//	mysql://user:password@unix(/path/socket)/db
//	mysql://user:password@h1:3306,h2:3306/db      the one of them that can be written
//	postgres://user:password@host:5432/db         PostgreSQL
//	etcd://h1:2379,h2:2379/prefix                 etcd
//	nats://user:password@h1:4222,h2:4222/STREAM   NATS
//	zookeeper://h1:2181,h2:2181/chroot?name=N     ZooKeeper; the name is leaf by default
//	redis://user:password@host:6379/0             Redis; +sentinel, +cluster; rediss: with TLS
//	leaf://TOKEN@h1:8080,h2:8080                  other Leaf servers; leafs: with TLS
//
// Tags alone:
//
//	ticket+mysql://u:p@h1/db,u:p@h2/db            ticket servers
//
// Worker IDs alone:
//
//	zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P&ip=A   the tree of Java Leaf
//	mysql://…?layout=worker_node                  the table WORKER_NODE of uid-generator
//	static:7                                      a number that the operator chose
//
// In Java Leaf's tree name is leaf.name, port is leaf.snowflake.port and ip is the IPv4
// address to appear under, by default this machine's. The path of sqlite: is taken as it
// stands, relative or absolute. User names and passwords are percent-encoded; a character
// that is not reserved in URLs, and "@", may stand for itself. Parameters are in
// docs/stores.md. No error holds a password.
//
// Two parameters are those of every URL that names a registry, but sqlite:: claim_delay,
// how long a claim waits on a registry that may lose writes, and reclaim=machine, which
// trusts that no other machine has a copy of the data directory, for static: and
// layout=leaf. In the same way store_id names the identity that a store must have.
package drivers
