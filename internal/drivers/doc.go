// Package drivers turns URLs into backends: stores of tags, registries of worker IDs, or both. It
// has the one table of drivers; apart from the drivers, no other package knows a database. The
// URLs:
//
//	sqlite:PATH                                   a file on this machine
//	mysql://user:password@host:3306/db?tls=true   MySQL or MariaDB
//	mysql://user:password@unix(/path/socket)/db
//	mysql://user:password@h1:3306,h2:3306/db      the writable one of several hosts
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
//	static:7                                      a number chosen by the operator
//
// In Java Leaf's tree name is leaf.name, port is leaf.snowflake.port and ip is the IPv4 address of
// this server there, by default this machine's. The path of sqlite: is literal, relative or
// absolute, apart from ?store_id= at its end. User names and passwords are percent-encoded;
// unreserved characters and "@" need no encoding. docs/stores.md lists the parameters. Errors never
// have a password.
//
// Every URL of a registry, except sqlite:, has two parameters. claim_delay is the wait of a claim
// on a registry that may lose writes. reclaim=machine, for static: and layout=leaf, promises that
// no other machine has a copy of the data directory. In a URL of a store, store_id is the required
// identity of the store.
package drivers
