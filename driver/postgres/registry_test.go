package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

func newPostgresRegistry(t testing.TB) string {
	t.Helper()
	database := postgresServer.NewDatabase(t)
	if err := initRegistry(t.Context(), postgresDB(t, postgresServer.URL(database))); err != nil {
		t.Fatal(err)
	}
	return database
}

func openPostgresRegistry(t testing.TB, url string) *sqldb.Registry {
	t.Helper()
	return suite.OpenRegistry(t, postgresDB(t, url), nil)
}

// corruptPostgres has a cell hold text, by way of a plain connection.
func corruptPostgres(t testing.TB, database string, id int64, text string) {
	t.Helper()
	_, err := postgresDB(t, postgresServer.URL(database)).Exec(`INSERT INTO leaf_worker (worker, record) VALUES ($1, $2)
		ON CONFLICT (worker) DO UPDATE SET record = EXCLUDED.record`, id, text)
	if err != nil {
		t.Fatal(err)
	}
}

func TestPostgresRegistry(t *testing.T) {
	bouncer := testserver.PgBouncer(t, postgresServer)
	for name, url := range map[string]func(database string) string{
		"pgbouncer": bouncer.URL,
		"odd": func(database string) string {
			return postgresServer.URL(database) + "&TimeZone=Asia/Shanghai&DateStyle=SQL&default_transaction_isolation=repeatable%20read"
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "pgbouncer" { // the same statements
				testserver.Long(t)
			}
			database := postgresServer.NewDatabase(t)
			drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
				postgresServer.Exec(t, database, "DROP TABLE IF EXISTS leaf_worker")
				if err := initRegistry(t.Context(), postgresDB(t, url(database))); err != nil {
					t.Fatal(err)
				}
				return drivertest.RegistryBackend{
					Open:    func(t testing.TB) worker.Registry { return openPostgresRegistry(t, url(database)) },
					Corrupt: func(t testing.TB, id int64, text string) { corruptPostgres(t, database, id, text) },
				}
			})
		})
	}
}

func TestPostgresRegistryRefusesUnfitTables(t *testing.T) {
	const table = `CREATE TABLE leaf_worker (worker bigint PRIMARY KEY, record text, update_time timestamptz)`
	replace := func(old, new string) string { return strings.Replace(table, old, new, 1) }
	tests := map[string]struct{ table, want string }{
		"short record":  {replace("text", "varchar(255)"), "ALTER record TYPE text"},
		"folded record": {replace("text", "text COLLATE folds"), `TYPE text COLLATE "C"`},
		"small worker":  {replace("bigint", "smallint"), "ALTER worker TYPE bigint"},
		"no column":     {replace("record", "holder"), "lacks a column"},
		"unlogged":      {replace("TABLE", "UNLOGGED TABLE"), "loses leases that were granted"},
		"no key":        {replace("PRIMARY KEY", ""), "ADD PRIMARY KEY (worker)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			database := postgresServer.NewDatabase(t)
			postgresServer.Exec(t, database, "CREATE COLLATION folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false)", tt.table)
			r := openPostgresRegistry(t, postgresServer.URL(database))
			sqltest.WantError(t, tt.want, sqltest.SwapError(t, r))
			postgresServer.Exec(t, database, "DROP TABLE leaf_worker", table)
			if err := sqltest.SwapError(t, r); err != nil {
				t.Errorf("after the cure: %v", err)
			}
		})
	}
}

// A server whose settings let no other have a copy loses nothing if it syncs.
func TestPostgresRegistryForgetful(t *testing.T) {
	sqltest.WantForgetful(t, openPostgresRegistry(t, postgresServer.URL(newPostgresRegistry(t))), true)
	server := testserver.Postgres(t, &testserver.PostgresOptions{Settings: []string{"wal_level=minimal", "max_wal_senders=0"}})
	database := server.NewDatabase(t)
	if err := initRegistry(t.Context(), postgresDB(t, server.URL(database))); err != nil {
		t.Fatal(err)
	}
	r := openPostgresRegistry(t, server.URL(database))
	sqltest.WantForgetful(t, r, false)
	server.Exec(t, "postgres", "ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(10 * time.Second); ; {
		epoch, err := r.ServerEpoch(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("epoch: %+v, %v, although pages may be torn", epoch, err)
		}
		if epoch.Lossy {
			return
		}
		time.Sleep(10 * time.Millisecond) // sessions take up a new setting by themselves
	}
}

// A thousand servers ask with every extension of their leases, so a look at a known server is one
// statement.
func TestPostgresEpochIsOneStatement(t *testing.T) {
	cfg, err := pgx.ParseConfig(postgresServer.URL(newPostgresRegistry(t)))
	if err != nil {
		t.Fatal(err)
	}
	var sent statements
	cfg.Tracer = &sent
	r := suite.OpenRegistry(t, sqltest.Pool(t, postgres.NewConnector(cfg)), nil)
	first, err := r.ServerEpoch(t.Context())
	if err != nil || first.Incarnation == "" {
		t.Fatalf("epoch %+v, %v", first, err)
	}
	before := sent.Load()
	if again, err := r.ServerEpoch(t.Context()); err != nil || again != first {
		t.Errorf("epoch %+v, %v after %+v", again, err, first)
	}
	if n := sent.Load() - before; n != 1 {
		t.Errorf("%d statements", n)
	}
}

// statements counts the statements that a client library sends.
type statements struct{ atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The clock is the server's, in every time zone of the session.
func TestPostgresRegistryClock(t *testing.T) {
	database := newPostgresRegistry(t)
	for _, zone := range []string{"UTC", "Asia/Shanghai", "America/St_Johns"} {
		r := openPostgresRegistry(t, withParam(t, postgresServer.URL(database), "TimeZone", zone))
		sqltest.TestClock(t, r)
	}
}

func TestPostgresIncarnation(t *testing.T) {
	server := testserver.Postgres(t, nil)
	url := server.URL(server.NewDatabase(t))
	if err := initRegistry(t.Context(), postgresDB(t, url)); err != nil {
		t.Fatal(err)
	}
	drivertest.TestIncarnation(t, openPostgresRegistry(t, url), func() {
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
	})
}
