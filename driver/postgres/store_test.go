package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// postgresTable is one that was made by hand.
const postgresTable = `CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint DEFAULT 1, step int,
	description varchar(256), update_time timestamptz DEFAULT now())`

func postgresDB(t testing.TB, url string) *sql.DB {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(postgres.NewConnector(cfg))
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { db.Close() })
	return db
}

func openPostgres(t testing.TB, db *sql.DB) *postgres.Store {
	t.Helper()
	s, err := storeOn(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// newPostgres makes a database by the statements, and a store in it.
func newPostgres(t testing.TB, statements ...string) (*postgres.Store, string) {
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
			url := postgresServer.URL(postgresServer.NewDatabase(t)) + tt.query
			testPostgresStore(t, url, func(t testing.TB, db *sql.DB) {
				if tt.table == "" {
					createStore(t, db)
				} else if _, err := db.Exec(tt.table); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A pooler has each transaction run in whatever session is free.
func TestPostgresStoreThroughPgBouncer(t *testing.T) {
	testPostgresStore(t, testserver.PgBouncer(t, postgresServer).URL(postgresServer.NewDatabase(t)), createStore)
}

func createStore(t testing.TB, db *sql.DB) {
	t.Helper()
	if err := initStore(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
}

// testPostgresStore runs the suite in one database, whose table it makes anew for
// each rule: databases take their time to create.
func testPostgresStore(t *testing.T, url string, create func(testing.TB, *sql.DB)) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		db := postgresDB(t, url)
		if _, err := db.Exec("DROP TABLE IF EXISTS leaf_alloc"); err != nil {
			t.Fatal(err)
		}
		create(t, db)
		return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return openPostgres(t, postgresDB(t, url)) }}
	})
}

func TestPostgresInit(t *testing.T) {
	db := postgresDB(t, postgresServer.URL(postgresServer.NewDatabase(t)))
	if ok, err := existsStore(t.Context(), db); ok || err != nil {
		t.Errorf("exists before init: %v, %v", ok, err)
	}
	tags := []segment.Tag{{Name: "order", MaxID: 1, Step: 2000, Description: "x"}, {Name: "Order", Step: 1}}
	if err := initStore(t.Context(), db, tags); err != nil {
		t.Fatal(err)
	}
	if ok, err := existsStore(t.Context(), db); !ok || err != nil {
		t.Errorf("exists after init: %v, %v", ok, err)
	}
	const twice = "init postgres store: the database has a table leaf_alloc already"
	if err := initStore(t.Context(), db, tags); !errors.Is(err, fs.ErrExist) || err.Error() != twice {
		t.Errorf("second init: %v, want fs.ErrExist", err)
	}
	s := openPostgres(t, db)
	g, err := s.Advance(t.Context(), "order", 0)
	if err != nil || g.Range != (leaf.Range{Start: 1, End: 2001}) || g.Step != 2000 || !strings.HasSuffix(g.Server, "/00000001") {
		t.Errorf("first range %+v, %v", g, err)
	}
	if got := strings.Join(names(t, s), " "); got != "Order@0 order@2001" {
		t.Errorf("tags %q", got)
	}
}

// An init that fails leaves nothing behind.
func TestPostgresInitAllOrNothing(t *testing.T) {
	db := postgresDB(t, postgresServer.URL(postgresServer.NewDatabase(t)))
	tags := []segment.Tag{{Name: "order", Step: 1}, {Name: "other", Step: 1, Description: "\x00"}}
	if err := initStore(t.Context(), db, tags); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid: the server holds no such text", err)
	}
	if ok, err := existsStore(t.Context(), db); ok || err != nil {
		t.Errorf("exists: %v, %v", ok, err)
	}
}

func TestPostgresNearTheEnd(t *testing.T) {
	s, _ := newPostgres(t, postgresTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 9223372036854775797, 100)")
	g, err := s.Advance(t.Context(), "order", 10)
	if err != nil || g.Range.End != math.MaxInt64 {
		t.Errorf("the last range: %v, %v", g, err)
	}
	for _, n := range []int64{0, 1, math.MaxInt64} {
		if g, err := s.Advance(t.Context(), "order", n); !errors.Is(err, leaf.ErrOverflow) {
			t.Errorf("n = %d: %v, %v", n, g, err)
		}
	}
}

func TestPostgresContext(t *testing.T) {
	database := initPostgres(t, order)
	s := openPostgres(t, postgresDB(t, postgresServer.URL(database)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Advance(ctx, "order", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// One row that was made by hand does not hide the others.
func TestPostgresOddRows(t *testing.T) {
	s, database := newPostgres(t, postgresTable, `INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES
		('good', 7, 10, now()), ('low', -5, 3, now()), ('minus', 5, -3, now()), ('no-max', NULL, 10, now()), ('no-step', 5, NULL, NULL), (E'new\nline', 1, 1, now())`)
	if got := strings.Join(names(t, s), " "); got != "good@7 low@-5 minus@5 no-max@0 no-step@5" {
		t.Errorf("listed %q", got)
	}
	for tag, want := range map[string]string{"no-max": "no max_id", "no-step": "no step", "minus": "step -3", "low": "negative max_id"} {
		if g, err := s.Advance(t.Context(), tag, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", tag, g, err, want)
		}
	}
	if g, err := s.Advance(t.Context(), "no-step", 3); err != nil || g.Range != (leaf.Range{Start: 5, End: 8}) || g.Step != 1 {
		t.Errorf("no-step by 3: %+v, %v", g, err)
	}
	postgresServer.Exec(t, database, "ALTER TABLE leaf_alloc DROP CONSTRAINT leaf_alloc_pkey", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('good', 9, 1)")
	if g, err := s.Advance(t.Context(), "good", 1); err == nil || !strings.Contains(err.Error(), "2 rows") {
		t.Errorf("two rows of one name: %v, %v", g, err)
	}
	if err := s.Create(t.Context(), segment.Tag{Name: "other", Step: 1}); err == nil || !strings.Contains(err.Error(), "ADD PRIMARY KEY (biz_tag)") {
		t.Errorf("create without a key: %v", err)
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
	wantError(t, "not today", err, alterErr, swapError(t, r))
	if !g.Range.Empty() {
		t.Errorf("got %v", g)
	}
}

// A transaction that was left open takes no Advance in.
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
	if got := strings.Join(names(t, openPostgres(t, postgresDB(t, postgresServer.URL(database)))), " "); got != "order@21" {
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

func execOn(t testing.TB, conn *sql.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
