// Package drivers turns store URLs into stores, and worker URLs into registries of
// worker IDs. It holds the one table of drivers, in two halves; no other package but a
// driver itself knows a database. URLs of stores:
//
//	sqlite:PATH                                   a file on this machine
//	mysql://user:password@host:3306/db?tls=true   MySQL or MariaDB
//	mysql://user:password@unix(/path/socket)/db
//	mysql://user:password@h1:3306,h2:3306/db      the one of them that can be written
//	postgres://user:password@host:5432/db         PostgreSQL
//	etcd://h1:2379,h2:2379/prefix                 etcd
//	redis://user:password@host:6379/0             Redis; +sentinel, +cluster; rediss: with TLS
//	ticket+mysql://u:p@h1/db,u:p@h2/db            ticket servers
//
// The path of sqlite: is taken as it stands, relative or absolute. User names and
// passwords are percent-encoded; a character that is not reserved in URLs, and "@",
// may stand for itself. Parameters of mysql: are tls (true, false, skip-verify,
// preferred), timeout (to connect), readTimeout and writeTimeout (durations such as
// 4s, their default). Those of the others are in docs/stores.md. No error holds a password.
//
// A worker URL is one of these but the last, which puts the worker IDs into the same database as the
// counters, or
//
//	zookeeper://h1:2181,h2:2181/chroot?name=N               a pool of our own, by default called leaf
//	zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P&ip=A   the tree of Java Leaf
//	mysql://…?layout=worker_node                            the table WORKER_NODE of uid-generator
//	static:7                                                a number that somebody chose
//
// where name is leaf.name, port is leaf.snowflake.port and ip is the IPv4 address to
// appear under, by default this machine's. Two further parameters are those of every
// worker URL but sqlite:, whose path is taken as it stands: claim_delay, how long a
// claim waits on a registry that may lose writes, and reclaim=machine, which trusts
// that no other machine has a copy of the data directory, for static: and layout=leaf.
package drivers
