package testserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/internal/testserver"
)

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func count(ctx context.Context, t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMariaDBKeepsDataOverKillAndStop(t *testing.T) {
	s := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--sql-mode="}})
	name, port := s.NewDatabase(t), s.Port
	s.Exec(t, name, "CREATE TABLE t (i INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO t VALUES (1)")
	for _, end := range []func() error{s.Kill, s.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			t.Fatal("the port still answers")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if s.Port != port {
			t.Fatalf("port %d became %d", port, s.Port)
		}
		if n := count(t.Context(), t, open(t, s.DSN(name))); n != 1 {
			t.Fatalf("%d rows, want 1", n)
		}
	}
	var mode string
	if err := open(t, s.DSN(name)).QueryRow("SELECT @@sql_mode").Scan(&mode); err != nil || mode != "" {
		t.Fatalf("sql_mode %q, %v: the arguments did not arrive", mode, err)
	}
}

func TestMariaDBPause(t *testing.T) {
	s := testserver.MariaDB(t, nil)
	name := s.NewDatabase(t)
	s.Exec(t, name, "CREATE TABLE t (i INT PRIMARY KEY)")
	db := open(t, s.DSN(name))
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); err == nil {
		t.Error("a paused server answered")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if n := count(t.Context(), t, db); n != 0 {
		t.Errorf("%d rows, want 0", n)
	}
}

func TestMariaDBLeavesNothing(t *testing.T) {
	s, err := testserver.StartMariaDB(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", s.Dir, err)
	}
}

func TestMariaDBReportsWhyItDidNotStart(t *testing.T) {
	s, err := testserver.StartMariaDB(&testserver.MariaDBOptions{Args: []string{"--no-such-option=1"}})
	if err == nil {
		s.Close()
		t.Fatal("started with an unknown option")
	}
	if !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("%v: does not quote the server", err)
	}
}
