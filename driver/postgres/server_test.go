package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// The store refuses a standby. A promoted standby is another server; a restarted server is the
// same.
func TestPostgresFailOver(t *testing.T) {
	server := testserver.Postgres(t, &testserver.PostgresOptions{Settings: []string{"fsync=off"}}) // the machine stays up
	database := server.NewDatabase(t)
	db := postgresDB(t, server.URL(database))
	if err := initStore(t.Context(), db, []segment.Tag{order}); err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s := openPostgres(t, db)
	server.Exec(t, database, "CREATE USER app PASSWORD 'hush'", "GRANT ALL ON leaf_alloc TO app")
	app := openPostgres(t, postgresDB(t, server.URLOf("app", "hush", database)))
	servers := func(want int) {
		t.Helper()
		seen := make(map[string]bool)
		for _, s := range []*sqldb.Store{s, app, openPostgres(t, postgresDB(t, server.URL(database)))} {
			g, err := advanceWhenUp(t, s)
			if err != nil {
				t.Fatal(err)
			}
			seen[g.Server] = true
		}
		if len(seen) != 1 || !seen[identity(t, server, want)] {
			t.Errorf("servers %v, want that of timeline %d", seen, want)
		}
	}
	restart := func() {
		t.Helper()
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	servers(1)
	restart()
	servers(1)
	if err := os.WriteFile(filepath.Join(server.Dir, "data", "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	restart()
	r := openPostgresRegistry(t, server.URL(database))
	_, listErr := r.List(t.Context())
	_, askErr := r.ServerEpoch(t.Context())
	_, err := openPostgres(t, postgresDB(t, server.URL(database))).Advance(t.Context(), "order", 1)
	sqltest.WantError(t, "a standby): name the primary", err, sqltest.LoadError(t, r), sqltest.SwapError(t, r), listErr, askErr)
	_, err = advanceWhenUp(t, s)
	sqltest.WantError(t, "the server is read-only", err)
	server.Exec(t, database, "SELECT pg_promote()")
	servers(2)
}

// advanceWhenUp gives sessions that a restart has broken their turn to fail.
func advanceWhenUp(t *testing.T, s *sqldb.Store) (g segment.Grant, err error) {
	t.Helper()
	for range 20 {
		if g, err = s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "closed") && !strings.Contains(err.Error(), "starting or stopping") {
			return g, err
		}
	}
	return g, err
}

func identity(t *testing.T, server *testserver.PostgresServer, timeline int) string {
	t.Helper()
	var id string
	if err := postgresDB(t, server.URL("postgres")).QueryRow("SELECT system_identifier::text FROM pg_control_system()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id + "/0000000" + string(rune('0'+timeline))
}

// A look at the server that fails for the moment is no reason to do without its identity from
// then on.
func TestPostgresIdentityBusy(t *testing.T) {
	database := initPostgres(t, order)
	postgresServer.Exec(t, database, "CREATE SCHEMA busy AUTHORIZATION CURRENT_USER",
		"CREATE FUNCTION busy.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS $$ BEGIN RAISE 'busy' USING ERRCODE = 'XX000'; END $$",
		"CREATE USER patient PASSWORD 'hush'", "GRANT ALL ON leaf_alloc TO patient", "GRANT USAGE ON SCHEMA busy TO patient",
		"ALTER USER patient SET search_path = busy, pg_catalog, public")
	t.Cleanup(func() { postgresServer.Exec(t, database, "DROP OWNED BY patient", "DROP USER patient") })
	s, err := storeOn(postgresDB(t, postgresServer.URLOf("patient", "hush", database)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("%+v, %v, want the server's error", g, err)
	}
	postgresServer.Exec(t, database, "DROP FUNCTION busy.pg_current_wal_lsn()")
	want := identity(t, postgresServer, 1)
	if g, err := s.Advance(t.Context(), "order", 1); err != nil || g.Server != want {
		t.Errorf("%+v, %v, want server %s", g, err, want)
	}
}

// Somebody may have taken from users what all users may do: the store works without.
func TestPostgresIdentityWithoutPrivilege(t *testing.T) {
	database := initPostgres(t, order)
	postgresServer.Exec(t, database, "CREATE USER plain PASSWORD 'hush'", "GRANT ALL ON leaf_alloc TO plain")
	t.Cleanup(func() { postgresServer.Exec(t, database, "DROP OWNED BY plain", "DROP USER plain") })
	var log strings.Builder
	for _, step := range []struct{ revoke, want string }{
		{"REVOKE EXECUTE ON FUNCTION pg_control_system FROM public", "00000001"},
		{"REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn FROM public", ""},
	} {
		postgresServer.Exec(t, database, step.revoke)
		s, err := storeOn(postgresDB(t, postgresServer.URLOf("plain", "hush", database)), &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(log.String(), "fail-over"); warned {
			t.Errorf("warned before there was reason to:\n%s", &log)
		}
		if g, err := s.Advance(t.Context(), "order", 1); err != nil || g.Server != step.want {
			t.Errorf("%s: %+v, %v, want server %q", step.revoke, g, err, step.want)
		}
	}
	if n := strings.Count(log.String(), "fail-over"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, &log)
	}
}

// A server that does not sync is warned about, once; one that hangs, or whose row is
// held, ends no call but by an error.
func TestPostgresServerThatForgets(t *testing.T) {
	server := testserver.Postgres(t, &testserver.PostgresOptions{Settings: []string{"fsync=off"}})
	database := server.NewDatabase(t)
	db := postgresDB(t, server.URL(database))
	if err := initStore(t.Context(), db, []segment.Tag{order}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s, err := storeOn(db, &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Advance(t.Context(), "order", 10); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "fsync=off"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, &log)
	}
	hold, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	sqltest.Exec(t, hold, "BEGIN")
	sqltest.Exec(t, hold, "UPDATE leaf_alloc SET step = 7")
	start := time.Now()
	_, err = s.Advance(context.Background(), "order", 1)
	sqltest.WantError(t, "another transaction holds the row", err)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the call took %v", took)
	}
	sqltest.Exec(t, hold, "ROLLBACK")
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Advance(ctx, "order", 1)
	sqltest.WantError(t, "deadline exceeded", err)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

// Only a restart changes max_wal_senders.
func TestPostgresStrictOnceLossy(t *testing.T) {
	server := testserver.Postgres(t, nil)
	restart := func(statement string) {
		server.Exec(t, "postgres", statement)
		if err := errors.Join(server.Stop(), server.Start()); err != nil {
			t.Fatal(err)
		}
	}
	restart("ALTER SYSTEM SET max_wal_senders = 0")
	suite.TestStrictOnceLossy(t, postgresDB(t, server.URL(server.NewDatabase(t))), func() { restart("ALTER SYSTEM RESET max_wal_senders") })
}
