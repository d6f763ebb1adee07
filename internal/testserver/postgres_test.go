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

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf/internal/testserver"
)

func openPostgres(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestPostgresKeepsDataOverKillAndStop(t *testing.T) {
	s := testserver.Postgres(t, &testserver.PostgresOptions{Settings: []string{"wal_level=logical"}})
	name, port := s.NewDatabase(t), s.Port
	s.Exec(t, name, "CREATE TABLE t (i INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	for _, end := range []func() error{s.Kill, s.Stop} {
		idle := openPostgres(t, s.URL(name)) // whose session must not be in the way
		if err := idle.Ping(); err != nil {
			t.Fatal(err)
		}
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
		if n := count(t.Context(), t, openPostgres(t, s.URL(name))); n != 1 {
			t.Fatalf("%d rows, want 1", n)
		}
	}
	var level string
	if err := openPostgres(t, s.URL(name)).QueryRow("SHOW wal_level").Scan(&level); err != nil || level != "logical" {
		t.Fatalf("wal_level %q, %v: the settings did not arrive", level, err)
	}
}

func TestPostgresPause(t *testing.T) {
	s := testserver.Postgres(t, nil)
	name := s.NewDatabase(t)
	s.Exec(t, name, "CREATE TABLE t (i INT PRIMARY KEY)")
	idle, fresh := openPostgres(t, s.URL(name)), openPostgres(t, s.URL(name))
	if n := count(t.Context(), t, idle); n != 0 {
		t.Fatalf("%d rows, want 0", n)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	for when, db := range map[string]*sql.DB{"on a connection that stood": idle, "to a new connection": fresh} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := db.ExecContext(ctx, "SELECT 1"); err == nil {
			t.Errorf("a paused server answered %s", when)
		}
		cancel()
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if n := count(t.Context(), t, idle); n != 0 {
		t.Errorf("%d rows, want 0", n)
	}
}

func TestPostgresUsers(t *testing.T) {
	s := testserver.Postgres(t, nil)
	s.Exec(t, "postgres", "CREATE USER app PASSWORD 'hush'", "CREATE USER "+testserver.TLSOnly+" PASSWORD 'hush'")
	tests := []struct {
		user, password string
		want           bool
	}{{"app", "hush", true}, {"app", "wrong", false}, {testserver.TLSOnly, "hush", false}}
	for _, tt := range tests {
		if err := openPostgres(t, s.URLOf(tt.user, tt.password, "postgres")).Ping(); (err == nil) != tt.want {
			t.Errorf("%s with %s: %v, want %v", tt.user, tt.password, err, tt.want)
		}
	}
}

func TestPgBouncer(t *testing.T) {
	s := testserver.Postgres(t, nil)
	b := testserver.PgBouncer(t, s)
	db := openPostgres(t, b.URL(s.NewDatabase(t))+"&default_query_exec_mode=exec")
	backends := make(map[int]bool)
	for range 8 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var pid int
		if err := conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		backends[pid] = true
	}
	if len(backends) > 4 {
		t.Errorf("8 clients got %d sessions of their own, want them shared", len(backends))
	}
}

func TestPostgresLeavesNothing(t *testing.T) {
	s, err := testserver.StartPostgres(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", s.Dir, err)
	}
}

func TestPostgresReportsWhyItDidNotStart(t *testing.T) {
	s, err := testserver.StartPostgres(&testserver.PostgresOptions{Settings: []string{"no_such_option=1"}})
	if err == nil {
		s.Close()
		t.Fatal("started with an unknown option")
	}
	if !strings.Contains(err.Error(), "no_such_option") {
		t.Errorf("%v: does not quote the server", err)
	}
}
