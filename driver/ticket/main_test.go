package ticket_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// shared are servers that no test harms; each has a database of its own on them.
var shared [3]*testserver.MariaDBServer

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "leaft")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	for i := range shared {
		server, err := startServer()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Close()
		shared[i] = server
	}
	return m.Run()
}

// startServer gives a server a folder of its own for temporary tables: at its start MariaDB removes
// all files there, even those of another running server.
func startServer() (*testserver.MariaDBServer, error) {
	dir, err := os.MkdirTemp("", "t")
	if err != nil {
		return nil, err
	}
	return testserver.StartMariaDB(&testserver.MariaDBOptions{Args: []string{"--tmpdir=" + dir}})
}

// ownServer is a server that a test may harm.
func ownServer(t *testing.T) *testserver.MariaDBServer {
	t.Helper()
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// A set is some databases, one on each server.
type set struct {
	hosts     []*testserver.MariaDBServer
	databases []string
}

func newSet(t testing.TB, hosts ...*testserver.MariaDBServer) set {
	t.Helper()
	s := set{hosts: hosts}
	for _, host := range hosts {
		s.databases = append(s.databases, host.NewDatabase(t))
	}
	return s
}

func config(t testing.TB, host *testserver.MariaDBServer, database string) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(host.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MultiStatements, cfg.InterpolateParams = true, true
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = 20*time.Second, 20*time.Second, 20*time.Second
	cfg.Logger = &mysql.NopLogger{}
	return cfg
}

func pool(t testing.TB, cfg *mysql.Config) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.Pool(t, connector)
}

// servers returns the set with new pools, or the members of the given numbers only.
func (s set) servers(t testing.TB, only ...int) []ticket.Server {
	t.Helper()
	if len(only) == 0 {
		for i := range s.hosts {
			only = append(only, i+1)
		}
	}
	var servers []ticket.Server
	for _, number := range only {
		host, database := s.hosts[number-1], s.databases[number-1]
		servers = append(servers, ticket.Server{Name: fmt.Sprintf("server%d/%s", number, database), DB: pool(t, config(t, host, database))})
	}
	return servers
}

// exec runs statements on one server.
func (s set) exec(t testing.TB, number int, statements ...string) {
	t.Helper()
	s.hosts[number-1].Exec(t, s.databases[number-1], statements...)
}

// in opens a set for one call.
func in(servers []ticket.Server, layout ticket.Layout, do func(*ticket.DB) error) error {
	db, err := ticket.New(servers, &ticket.Options{Layout: layout})
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

func initTickets(ctx context.Context, servers []ticket.Server, layout ticket.Layout, tags []segment.Tag) error {
	return in(servers, layout, func(db *ticket.DB) error { return db.Init(ctx, tags) })
}

func resize(ctx context.Context, servers []ticket.Server, layout ticket.Layout, o *ticket.ResizeOptions) error {
	return in(servers, layout, func(db *ticket.DB) error { return db.Resize(ctx, o) })
}

func exists(ctx context.Context, servers []ticket.Server) (ok bool, err error) {
	err = in(servers, ticket.Layout{}, func(db *ticket.DB) (err error) {
		ok, err = db.Store().Exists(ctx)
		return err
	})
	return ok, err
}

func open(t testing.TB, servers []ticket.Server, layout ticket.Layout, opts *ticket.Options) *ticket.Store {
	t.Helper()
	var o ticket.Options
	if opts != nil {
		o = *opts
	}
	o.Layout = layout
	db, err := ticket.New(servers, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db.Store()
}

func initSet(t testing.TB, servers []ticket.Server, layout ticket.Layout, tags ...segment.Tag) {
	t.Helper()
	if err := initTickets(t.Context(), servers, layout, tags); err != nil {
		t.Fatal(err)
	}
}

// order is the tag of most tests.
var order = segment.Tag{Name: "order", MaxID: 1, Step: 100}

// draw takes one grant and records it.
func draw(ctx context.Context, t testing.TB, s segment.Store, n int64, got *drivertest.Ranges) segment.Grant {
	t.Helper()
	g, err := s.Advance(ctx, "order", n)
	if err != nil {
		t.Fatal(err)
	}
	got.Add(g.Range)
	return g
}
