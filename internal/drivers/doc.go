// Package drivers turns store URLs into stores, and worker URLs into registries of
// worker IDs. It holds the one table of drivers, in two halves; no other package but a
// driver itself knows a database. URLs of stores:
//
//	sqlite:PATH                                   a file on this machine
//	mysql://user:password@host:3306/db?tls=true   MySQL or MariaDB
//	mysql://user:password@unix(/path/socket)/db
//
// The path of sqlite: is taken as it stands, relative or absolute. User names and
// passwords are percent-encoded; a character that is not reserved in URLs, and "@",
// may stand for itself. Parameters of mysql: are tls (true, false, skip-verify,
// preferred), timeout (to connect), readTimeout and writeTimeout (durations such as
// 5s, their default). No error holds a password.
//
// A worker URL is one of these, which puts the worker IDs into the same database as the
// counters, or
//
//	zookeeper://h1:2181,h2:2181/chroot?name=N               a pool of our own, by default called leaf
//	zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P&ip=A   the tree of Java Leaf
//	static:7                                                a number that somebody chose
//
// where name is leaf.name, port is leaf.snowflake.port and ip is the IPv4 address to
// appear under, by default this machine's. Two further parameters are those of every
// worker URL but sqlite:, whose path is taken as it stands: claim_delay, how long a
// claim waits on a registry that may lose writes, and reclaim=machine, which trusts
// that no other machine has a copy of the data directory, for static: and layout=leaf.
package drivers
