package postgres_test

import (
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// postgresTable is a table made by hand.
const postgresTable = `CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint DEFAULT 1, step int,
	description varchar(256), update_time timestamptz DEFAULT now())`

func postgresDB(t testing.TB, url string) *sql.DB {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.Pool(t, postgres.NewConnector(cfg))
}

func openPostgres(t testing.TB, db *sql.DB) *sqldb.Store { return suite.OpenStore(t, db) }

// newPostgres makes a database by the statements, and a store in it.
func newPostgres(t testing.TB, statements ...string) (*sqldb.Store, string) {
	t.Helper()
	name := postgresServer.NewDatabase(t)
	postgresServer.Exec(t, name, statements...)
	return openPostgres(t, postgresDB(t, postgresServer.URL(name))), name
}

// initPostgres makes a database with the store's own table.
func initPostgres(t testing.TB, tags ...segment.Tag) (database string) {
	t.Helper()
	database = postgresServer.NewDatabase(t)
	if err := initStore(t.Context(), postgresDB(t, postgresServer.URL(database)), tags); err != nil {
		t.Fatal(err)
	}
	return database
}

func TestPostgresStore(t *testing.T) {
	tests := map[string]struct{ table, query string }{ // no table: the store's own
		"own table": {},
		"by hand": {postgresTable, "&default_query_exec_mode=simple_protocol" +
			"&TimeZone=Asia/Shanghai&DateStyle=SQL&standard_conforming_strings=off&extra_float_digits=-15"},
		// Each call that meets another is undone, and repeated.
		"serializable": {"", "&default_transaction_isolation=serializable"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if name != "own table" { // the same statements
				testserver.Long(t)
			}
			url := postgresServer.URL(postgresServer.NewDatabase(t)) + tt.query
			testPostgresStore(t, url, func(t testing.TB, db *sql.DB) {
				if tt.table == "" {
					createStore(t, db)
				} else if _, err := db.Exec("DROP TABLE IF EXISTS leaf_store; " + tt.table); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A pooler runs each transaction in any free session.
func TestPostgresStoreThroughPgBouncer(t *testing.T) {
	testPostgresStore(t, testserver.PgBouncer(t, postgresServer).URL(postgresServer.NewDatabase(t)), createStore)
}

func createStore(t testing.TB, db *sql.DB) {
	t.Helper()
	if err := initStore(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
}

// testPostgresStore runs the suite in one database and creates the table again for each rule: a new
// database takes long.
func testPostgresStore(t *testing.T, url string, create func(testing.TB, *sql.DB)) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		db := postgresDB(t, url)
		if _, err := db.Exec("DROP TABLE IF EXISTS leaf_alloc, leaf_deleted, leaf_strict"); err != nil {
			t.Fatal(err)
		}
		create(t, db)
		return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return openPostgres(t, postgresDB(t, url)) }}
	})
}

// An init that fails leaves nothing behind.
func TestPostgresInitAllOrNothing(t *testing.T) {
	db := postgresDB(t, postgresServer.URL(postgresServer.NewDatabase(t)))
	tags := []segment.Tag{{Name: "order", Step: 1}, {Name: "other", Step: 1, Options: segment.Describe("\x00")}}
	if err := initStore(t.Context(), db, tags); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid: the server holds no such text", err)
	}
	if ok, err := existsStore(t.Context(), db); ok || err != nil {
		t.Errorf("exists: %v, %v", ok, err)
	}
}

// The new max_id comes before the commit: a commit that fails hands out nothing.
func TestPostgresCommitFails(t *testing.T) {
	database := initPostgres(t, order)
	db := postgresDB(t, postgresServer.URL(database))
	s := openPostgres(t, db)
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	r := openPostgresRegistry(t, postgresServer.URL(database))
	postgresServer.Exec(t, database, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$`,
		`CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON leaf_alloc DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()`,
		`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON leaf_worker DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()`)
	_, alterErr := s.Alter(t.Context(), "order", segment.Change{Step: new(int64(9))})
	g, err := s.Advance(t.Context(), "order", 1)
	sqltest.WantError(t, "not today", err, alterErr, sqltest.SwapError(t, r))
	if !g.Range.Empty() {
		t.Errorf("got %v", g)
	}
}

// An open transaction does not include an Advance.
func TestPostgresOpenTransaction(t *testing.T) {
	database := initPostgres(t, segment.Tag{Name: "order", MaxID: 1, Step: 10})
	db := postgresDB(t, postgresServer.URL(database))
	db.SetMaxOpenConns(1)
	s := openPostgres(t, db)
	for _, statement := range []string{"BEGIN", "SELECT 1"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(t.Context(), "order", 10); err != nil {
			t.Errorf("after %s: %v", statement, err)
		}
	}
	if got := strings.Join(sqltest.Names(t, openPostgres(t, postgresDB(t, postgresServer.URL(database)))), " "); got != "order@21" {
		t.Errorf("others see %q, want order@21", got)
	}
}

// A URL of the tests with another value of a parameter.
func withParam(t testing.TB, raw, name, value string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// A trigger that clamps max_id makes an Advance fail: its range was granted before.
func TestTriggerThatClamps(t *testing.T) {
	s, database := newPostgres(t, postgresTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
		`CREATE FUNCTION clamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.max_id = LEAST(NEW.max_id, 20); RETURN NEW; END'`,
		"CREATE TRIGGER clamp BEFORE UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION clamp()")
	if g, err := s.Advance(t.Context(), "order", 0); err != nil || g.Range != (leaf.Range{Start: 1, End: 11}) {
		t.Fatalf("below the limit: %v, %v", g, err)
	}
	for _, n := range []int64{0, 15} {
		if g, err := s.Advance(t.Context(), "order", n); err == nil || !strings.Contains(err.Error(), "drop the trigger") {
			t.Errorf("n = %d: %v, %v", n, g, err)
		}
	}
	postgresServer.Exec(t, database, "DROP TRIGGER clamp ON leaf_alloc")
	if g, err := s.Advance(t.Context(), "order", 5); err != nil || g.Range != (leaf.Range{Start: 20, End: 25}) {
		t.Errorf("without the trigger: %v, %v", g, err)
	}
}
