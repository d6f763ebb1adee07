package postgres_test

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// emptyDB is a database without tables.
func emptyDB(t testing.TB) *sql.DB {
	t.Helper()
	return postgresDB(t, postgresServer.URL(postgresServer.NewDatabase(t)))
}

func TestStoreInit(t *testing.T) {
	suite.TestStoreInit(t, emptyDB(t), func(server string) bool { return strings.HasSuffix(server, "/00000001") })
}

func TestEnsure(t *testing.T) { suite.TestEnsure(t, emptyDB(t)) }

func TestDeletedByHand(t *testing.T) { suite.TestDeletedByHand(t, emptyDB(t)) }

func TestRegistryInit(t *testing.T) { suite.TestRegistryInit(t, emptyDB(t)) }

func TestInitTogether(t *testing.T) {
	database := postgresServer.NewDatabase(t)
	suite.TestInits(t, func(t testing.TB) func(testing.TB) *sql.DB {
		postgresServer.Exec(t, database, "DROP TABLE IF EXISTS leaf_alloc, leaf_worker")
		return func(t testing.TB) *sql.DB { return postgresDB(t, postgresServer.URL(database)) }
	}, nil)
}

func TestIdentity(t *testing.T) {
	database := postgresServer.NewDatabase(t)
	suite.TestIdentity(t, func(t testing.TB) *sql.DB { return postgresDB(t, postgresServer.URL(database)) })
}

// A user who may not create the table, nor read it, is served without an identity, and told so.
func TestNoIdentity(t *testing.T) {
	_, database := newPostgres(t, postgresTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
		"CREATE USER writer PASSWORD 'hush'", "GRANT SELECT, INSERT, UPDATE ON leaf_alloc TO writer", "REVOKE CREATE ON SCHEMA public FROM public")
	for range 2 {
		var log strings.Builder
		s, err := storeOn(postgresDB(t, postgresServer.URLOf("writer", "hush", database)), &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Advance(t.Context(), "order", 1)
		if err != nil || g.Store != "" || !strings.Contains(log.String(), "no identity") {
			t.Errorf("the grant is %+v, %v; the log:\n%s", g, err, &log)
		}
		// Another user creates it.
		if g, err := openPostgres(t, postgresDB(t, postgresServer.URL(database))).Advance(t.Context(), "order", 1); err != nil || g.Store == "" {
			t.Errorf("as the owner: %+v, %v", g, err)
		}
	}
}

// Servers with other search paths use the identity next to their common table.
func TestIdentityBesideTheTable(t *testing.T) {
	_, database := newPostgres(t, postgresTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)", `CREATE SCHEMA "Own"`)
	var seen []string
	for _, path := range []string{"&search_path=%22Own%22,public", "&search_path=public"} {
		g, err := openPostgres(t, postgresDB(t, postgresServer.URL(database)+path)).Advance(t.Context(), "order", 1)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, g.Store)
	}
	if seen[0] == "" || seen[0] != seen[1] {
		t.Errorf("one table, and the identities %q", seen)
	}
}

func TestListingHoldsNothing(t *testing.T) { suite.TestListingHoldsNothing(t, emptyDB(t)) }

func TestOddRows(t *testing.T) {
	s, database := newPostgres(t, postgresTable, `INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (E'new\nline', 1, 1), `+sqltest.OddRows)
	sqltest.TestOddRows(t, s)
	postgresServer.Exec(t, database, "ALTER TABLE leaf_alloc DROP CONSTRAINT leaf_alloc_pkey", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('good', 9, 1)")
	if g, err := s.Advance(t.Context(), "good", 1); err == nil || !strings.Contains(err.Error(), "2 rows") {
		t.Errorf("two rows of one name: %v, %v", g, err)
	}
	if err := s.Create(t.Context(), segment.Tag{Name: "other", Step: 1}); err == nil || !strings.Contains(err.Error(), "ADD PRIMARY KEY (biz_tag)") {
		t.Errorf("create without a key: %v", err)
	}
}

func TestOtherText(t *testing.T) {
	database := newPostgresRegistry(t)
	corruptPostgres(t, database, 7, sqltest.OtherText)
	sqltest.TestOtherText(t, openPostgresRegistry(t, postgresServer.URL(database)))
}

func TestKilledServer(t *testing.T) {
	server := testserver.Postgres(t, &testserver.PostgresOptions{Settings: []string{"fsync=off"}}) // the machine stays up
	url := server.URL(server.NewDatabase(t))
	db := postgresDB(t, url)
	if err := initStore(t.Context(), db, sqltest.KilledTags()); err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	t.Run("store", func(t *testing.T) { sqltest.TestKilledStore(t, server, openPostgres(t, db)) })
	t.Run("registry", func(t *testing.T) {
		sqltest.TestKilledRegistry(t, server, func() worker.Registry { return openPostgresRegistry(t, url) })
	})
}

// BenchmarkAdvance measures durable allocations: its server syncs, which that of the tests
// does not.
func BenchmarkAdvance(b *testing.B) {
	server := testserver.Postgres(b, nil)
	db := postgresDB(b, server.URL(server.NewDatabase(b)))
	if err := initStore(b.Context(), db, sqltest.BenchTags()); err != nil {
		b.Fatal(err)
	}
	sqltest.Benchmark(b, openPostgres(b, db))
}
