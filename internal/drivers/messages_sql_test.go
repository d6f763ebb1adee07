package drivers_test

import (
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// initBoth creates a store and a registry.
func initBoth(t *testing.T, url string) {
	t.Helper()
	if err := initStore(t.Context(), url, sample); err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(t.Context(), url); err != nil {
		t.Fatal(err)
	}
}

func TestMessagesOfPostgres(t *testing.T) {
	server := testserver.Postgres(t, nil)
	db, empty, other := server.NewDatabase(t), server.NewDatabase(t), server.NewDatabase(t)
	initBoth(t, server.URL(db))
	server.Exec(t, other, "CREATE TABLE leaf_alloc (name text PRIMARY KEY)", "CREATE TABLE leaf_worker (name text PRIMARY KEY)")
	server.Exec(t, db, "CREATE USER reader PASSWORD '"+secret+"'", "GRANT SELECT ON leaf_alloc, leaf_worker TO reader",
		"CREATE USER nobody PASSWORD '"+secret+"'",
		"CREATE USER careful PASSWORD '"+secret+"'", "GRANT ALL ON leaf_alloc, leaf_worker TO careful",
		"ALTER USER careful SET default_transaction_read_only = on",
		"CREATE USER "+testserver.TLSOnly+" PASSWORD '"+secret+"'")
	_, addr, _ := strings.Cut(server.URL(""), "@")
	addr, _, _ = strings.Cut(addr, "/")
	gone := freeAddr(t)
	fake, _ := impostor(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 8)) // the client asks for encryption
		_, _ = conn.Write([]byte("S"))
	})
	complain(t, "postgres", []complaint{
		{name: "no server", url: "postgres://u:hunter2@" + gone + "/db", calls: all, want: []string{"no server answers", gone, "check that it runs"}},
		{name: "unknown host", url: "postgres://u:hunter2@leaf.invalid/db", calls: all, want: []string{"leaf.invalid", "check that it runs, and the host"}},
		{name: "two hosts", url: "postgres://u:hunter2@" + gone + "," + addr + "/nowhere?sslmode=disable", calls: use, want: []string{gone, addr}},
		{name: "wrong password", url: server.URLOf("reader", "x"+secret, db), calls: all, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "unknown user", url: server.URLOf("stranger", secret, db), calls: all, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "no password", url: server.URLOf("reader", "", db), calls: all, want: []string{"refuses the user", "check the user name and the password"}},
		{name: "no database", url: server.URL("nowhere"), calls: all, want: []string{"no such database", addr, "CREATE DATABASE"}},
		{name: "no store", url: server.URL(empty), calls: useStore, want: []string{"was not created: the database has no table leaf_alloc"}},
		{name: "no registry", url: server.URL(empty), calls: useWorkers, want: []string{"was not created: the database has no table leaf_worker"}},
		{name: "reads only", url: server.URLOf("reader", secret, db), calls: []string{"advance"}, want: []string{"lacks a privilege", "GRANT SELECT, INSERT, UPDATE, DELETE ON leaf_alloc"}},
		{name: "no privilege", url: server.URLOf("nobody", secret, db), calls: useWorkers, want: []string{"lacks a privilege", "ON leaf_worker"}},
		{name: "may not create", url: server.URLOf("nobody", secret, empty), calls: []string{"init store", "init workers"}, want: []string{"lacks a privilege", "CREATE ON SCHEMA"}},
		{name: "another table", url: server.URL(other), calls: use, want: []string{"lacks a column", "it must have"}},
		{name: "read-only", url: server.URLOf("careful", secret, db), calls: []string{"advance", "list workers"}, want: []string{"read-only", "name the primary"}},
		{name: "no TLS", url: strings.Replace(server.URLOf("postgres", secret, db), "disable", "require", 1), calls: all, want: []string{"offers no encryption", addr, "sslmode=disable"}},
		{name: "TLS only", url: server.URLOf(testserver.TLSOnly, secret, db), calls: all, want: []string{"not without encryption", addr, "sslmode"}},
		{name: "not trusted", url: "postgres://u:hunter2@" + fake + "/db?sslmode=verify-full", calls: all, want: []string{"certificate is not trusted", fake, "sslrootcert"}},
	})
}

// mysqlGreeting is the first message of a MySQL server, here with encryption.
const mysqlGreeting = "0a382e302e333600" + // protocol 10, version 8.0.36
	"01000000" + "3132333435363738" + "00" + // connection, first part of the challenge
	"008a" + "2d" + "0200" + "0800" + "15" + // capabilities, character set, status, capabilities, length of the challenge
	"00000000000000000000" + "313233343536373839303132" + "00" +
	"6d7973716c5f6e61746976655f70617373776f726400" // mysql_native_password

func TestMessagesOfMySQL(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	db, empty, other, tickets := server.NewDatabase(t), server.NewDatabase(t), server.NewDatabase(t), server.NewDatabase(t)
	as := func(user, database string) string { return strings.Replace(server.URL(database), "root", user, 1) }
	ticket := func(user, database string) string { return "ticket+" + as(user, database) }
	initBoth(t, server.URL(db))
	if err := initStore(t.Context(), ticket("root", tickets), sample); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, other, "CREATE TABLE leaf_alloc (name int PRIMARY KEY)", "CREATE TABLE leaf_worker (name int PRIMARY KEY)",
		"CREATE TABLE Tickets64 (name int PRIMARY KEY)")
	by := "@'127.0.0.1' IDENTIFIED BY '" + secret + "'"
	server.Exec(t, db, "CREATE USER reader"+by, "GRANT SELECT ON *.* TO reader@'127.0.0.1'", "CREATE USER stranger"+by,
		"CREATE USER writer"+by, "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON *.* TO writer@'127.0.0.1'")
	_, addr, _ := strings.Cut(strings.TrimSuffix(server.URL(""), "/"), "@")
	gone := freeAddr(t)
	greeting, err := hex.DecodeString(mysqlGreeting)
	if err != nil {
		t.Fatal(err)
	}
	fake, _ := impostor(t, func(conn net.Conn) {
		_, _ = conn.Write(append([]byte{byte(len(greeting)), 0, 0, 0}, greeting...))
		_, _ = io.ReadFull(conn, make([]byte, 36)) // the client asks for encryption
	})
	complain(t, "mysql", []complaint{
		{name: "no server", url: "mysql://u:hunter2@" + gone + "/db", calls: all, want: []string{"no server answers", gone, "check that it runs"}},
		{name: "unknown host", url: "mysql://u:hunter2@leaf.invalid/db", calls: all, want: []string{"leaf.invalid", "check that it runs, and the host"}},
		{name: "wrong password", url: as("reader:x"+secret, db), calls: all, want: []string{"refuses the user", "check the user name and the password"}},
		{name: "unknown user", url: as("someone:"+secret, db), calls: all, want: []string{"refuses the user", "check the user name and the password"}},
		{name: "no password", url: as("reader", db), calls: all, want: []string{"refuses the user", "check the user name and the password"}},
		{name: "no database", url: server.URL("nowhere"), calls: all, want: []string{"no such database", "CREATE DATABASE"}},
		{name: "no store", url: server.URL(empty), calls: useStore, want: []string{"was not created: the database has no table leaf_alloc"}},
		{name: "no registry", url: server.URL(empty), calls: useWorkers, want: []string{"was not created: the database has no table leaf_worker"}},
		{name: "reads only", url: as("reader:"+secret, db), calls: []string{"advance"}, want: []string{"lacks a privilege", "GRANT SELECT, INSERT, UPDATE, DELETE"}},
		{name: "no privilege", url: as("stranger:"+secret, db), calls: all, want: []string{"lacks a privilege", "GRANT SELECT, INSERT, UPDATE, DELETE"}},
		{name: "another table", url: server.URL(other), calls: use, want: []string{"lacks a column", "it must have"}},
		{name: "no TLS", url: server.URL(db) + "?tls=true", calls: all, want: []string{"offers no encryption", "remove tls"}},
		{name: "not trusted", url: "mysql://u:hunter2@" + fake + "/db?tls=true", calls: all, want: []string{"certificate is not trusted", "tls=skip-verify"}},
	})
	complain(t, "ticket", []complaint{
		{name: "no server", url: "ticket+mysql://u:hunter2@" + gone + "/db", calls: allStore, want: []string{"no server answers", gone, "check that it runs"}},
		{name: "two servers", url: "ticket+mysql://u:hunter2@" + gone + "/db,u:hunter2@" + addr + "/db", calls: useStore, want: []string{gone, "no server answers", addr, "refuses the user"}},
		{name: "unknown host", url: "ticket+mysql://u:hunter2@leaf.invalid/db", calls: allStore, want: []string{"leaf.invalid", "check that it runs, and the host"}},
		{name: "wrong password", url: ticket("reader:x"+secret, tickets), calls: allStore, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "no password", url: ticket("reader", tickets), calls: allStore, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "no database", url: ticket("root", "nowhere"), calls: allStore, want: []string{"no such database", addr, "CREATE DATABASE"}},
		{name: "no store", url: ticket("root", empty), calls: useStore, want: []string{addr, "leaf_ticket"}},
		{name: "reads only", url: ticket("reader:"+secret, tickets), calls: []string{"advance"}, want: []string{"lacks a privilege", addr, "GRANT SELECT, INSERT, UPDATE, DELETE"}},
		{name: "another table", url: ticket("root", other), calls: []string{"init store"}, want: []string{addr, "must have the columns id and stub"}},
		{name: "another layout", url: ticket("root", tickets) + "?stride=50", calls: useStore, want: []string{addr, "stride=50", "never changes"}},
		{name: "part of a set", url: ticket("root", tickets), calls: []string{"init store"}, want: []string{addr, "part of a set already"}},
		{name: "no TLS", url: ticket("root", tickets) + "?tls=true", calls: allStore, want: []string{"offers no encryption", addr, "remove tls"}},
		{name: "not trusted", url: "ticket+mysql://u:hunter2@" + fake + "/db?tls=true", calls: allStore, want: []string{"certificate is not trusted", fake, "tls=skip-verify"}},
	})
	server.Exec(t, "", "SET GLOBAL read_only = 1")
	complain(t, "read-only", []complaint{
		{name: "mysql", url: as("writer:"+secret, db), calls: []string{"advance"}, want: []string{"read-only", "name the primary"}},
		{name: "mysql init", url: as("writer:"+secret, empty), calls: []string{"init store", "init workers"}, want: []string{"read-only", "name the primary"}},
		{name: "ticket", url: ticket("writer:"+secret, tickets), calls: []string{"advance"}, want: []string{"read-only", addr, "must be a primary"}},
	})
}
