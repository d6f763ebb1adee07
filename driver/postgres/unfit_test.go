package postgres_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

func TestPostgresRefusesUnfitTables(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(postgresTable, old, new, 1) }
	tests := map[string]struct{ table, want string }{
		"int":            {replace("max_id bigint", "max_id int"), "ALTER max_id TYPE bigint"},
		"numeric":        {replace("max_id bigint", "max_id numeric"), "ALTER max_id TYPE bigint"},
		"numeric step":   {replace("step int", "step numeric"), "ALTER step TYPE bigint"},
		"padded name":    {replace("varchar(128)", "char(128)"), "ALTER biz_tag TYPE text"},
		"folded name":    {replace("varchar(128)", "text COLLATE folds"), `ALTER biz_tag TYPE text COLLATE "C"`},
		"no time zone":   {replace("timestamptz", "timestamp"), "TYPE timestamp with time zone"},
		"no description": {replace("description varchar(256),", ""), "ADD description text"},
		"no column":      {replace("update_time", "updated"), "lacks a column"},
		"unlogged":       {replace("CREATE TABLE", "CREATE UNLOGGED TABLE"), "SET LOGGED"},
		"no table":       {"SELECT 1", "not created: the database has no table leaf_alloc"},
		"view":           {"CREATE VIEW leaf_alloc AS SELECT 'a'::text biz_tag, 1::bigint max_id, 1 step, ''::text description, now() update_time", "view"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, database := newPostgres(t, "CREATE COLLATION folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false)", tt.table)
			for _, n := range []int64{0, 1} {
				_, err := s.Advance(t.Context(), "order", n)
				sqltest.WantError(t, tt.want, err)
			}
			// Once the table is well, so is the store.
			drop := "DROP TABLE IF EXISTS leaf_alloc"
			if name == "view" {
				drop = "DROP VIEW leaf_alloc"
			}
			postgresServer.Exec(t, database, drop, postgresTable)
			if err := s.Create(t.Context(), segment.Tag{Name: "order", Step: 1}); err != nil {
				t.Errorf("after the cure: %v", err)
			}
		})
	}
}

// The store checks the table again after somebody has dropped it.
func TestPostgresTableComesAnew(t *testing.T) {
	s, database := newPostgres(t, postgresTable, "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1)")
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	postgresServer.Exec(t, database, "DROP TABLE leaf_alloc")
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("error %v, want segment.ErrNotCreated", err)
	}
	postgresServer.Exec(t, database, strings.Replace(postgresTable, "CREATE", "CREATE UNLOGGED", 1), "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1)")
	_, err := s.Advance(t.Context(), "order", 1)
	sqltest.WantError(t, "SET LOGGED", err)
}

// Frequent mistakes and their error messages.
func TestPostgresAdvice(t *testing.T) {
	database := initPostgres(t, order)
	postgresServer.Exec(t, database, "CREATE USER reader PASSWORD 'hush'", "GRANT SELECT ON leaf_alloc TO reader",
		"CREATE USER stranger PASSWORD 'hush'", "CREATE USER "+testserver.TLSOnly+" PASSWORD 'hush'",
		"CREATE USER lazy PASSWORD 'hush'", "GRANT ALL ON leaf_alloc TO lazy", "ALTER USER lazy SET synchronous_commit = off",
		"CREATE USER timid PASSWORD 'hush'", "GRANT ALL ON leaf_alloc TO timid", "ALTER USER timid SET default_transaction_read_only = on",
		"CREATE USER latin PASSWORD 'hush'", "GRANT ALL ON leaf_alloc TO latin", "ALTER USER latin SET client_encoding = latin1")
	t.Cleanup(func() {
		postgresServer.Exec(t, database, "DROP OWNED BY reader, stranger, lazy, timid, latin, "+testserver.TLSOnly,
			"DROP USER reader, stranger, lazy, timid, latin, "+testserver.TLSOnly)
	})
	as := func(user, password string) string { return postgresServer.URLOf(user, password, database) }
	tests := map[string]struct{ url, want string }{
		"wrong password":     {as("reader", "tell-nobody"), "check the user name and the password"},
		"unknown user":       {as("who", "tell-nobody"), "check the user name and the password"},
		"unknown database":   {postgresServer.URL("nowhere"), "no such database"},
		"no privilege":       {as("stranger", "hush"), "lacks a privilege: GRANT"},
		"select only":        {as("reader", "hush"), "lacks a privilege: GRANT"},
		"refused":            {"postgres://postgres@127.0.0.1:1/x", "no server answers there"},
		"no tls":             {withParam(t, postgresServer.URL(database), "sslmode", "require"), "offers no encryption: set sslmode=disable"},
		"only with tls":      {as(testserver.TLSOnly, "hush"), "not without encryption"},
		"forgetful commits":  {as("lazy", "hush"), "SET synchronous_commit = on"},
		"read-only sessions": {as("timid", "hush"), "SET default_transaction_read_only = off"},
		"other characters":   {as("latin", "hush"), "client_encoding is LATIN1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			db := postgresDB(t, tt.url)
			_, err := openPostgres(t, db).Advance(t.Context(), "order", 1)
			sqltest.WantError(t, tt.want, err)
			if err != nil && (strings.Contains(err.Error(), "tell-nobody") || strings.Contains(err.Error(), "hush")) {
				t.Errorf("%v: holds the password", err)
			}
			if errors.Is(err, segment.ErrNotCreated) {
				t.Errorf("%v: is segment.ErrNotCreated", err)
			}
		})
	}
}

func TestPostgresInitWithoutPrivilege(t *testing.T) {
	database := postgresServer.NewDatabase(t)
	postgresServer.Exec(t, database, "CREATE USER modest PASSWORD 'hush'", "REVOKE CREATE ON SCHEMA public FROM public")
	t.Cleanup(func() { postgresServer.Exec(t, database, "DROP USER modest") })
	err := initStore(t.Context(), postgresDB(t, postgresServer.URLOf("modest", "hush", database)), nil)
	sqltest.WantError(t, "CREATE ON SCHEMA", err)
}

// Another session of a pooler, or another user, may change every setting.
func TestPostgresSessionTurnsUnfit(t *testing.T) {
	database := initPostgres(t, order)
	db := postgresDB(t, postgresServer.URL(database))
	db.SetMaxOpenConns(1)
	s := openPostgres(t, db)
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	for harm, want := range map[string]string{"SET synchronous_commit = off": "synchronous_commit=off", "SET client_encoding = latin1": "client_encoding is LATIN1"} {
		if _, err := db.Exec(harm); err != nil {
			t.Fatal(err)
		}
		g, err := s.Advance(t.Context(), "order", 1)
		sqltest.WantError(t, want, err)
		if !g.Range.Empty() {
			t.Errorf("%s: got %v", harm, g)
		}
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Errorf("%s: a new session: %v", harm, err)
		}
	}
}

func TestPostgresRefusesUnfitDatabases(t *testing.T) {
	name := postgresServer.NewDatabase(t) + "_latin"
	postgresServer.Exec(t, "postgres", "CREATE DATABASE "+name+" ENCODING 'LATIN1' TEMPLATE template0")
	url := withParam(t, postgresServer.URL(name), "client_encoding", "UTF8")
	err := initStore(t.Context(), postgresDB(t, url), nil)
	sqltest.WantError(t, "ENCODING 'UTF8'", err)
	if !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("%v: is not ErrUnsupported", err)
	}
	other, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = openPostgres(t, other).Advance(t.Context(), "order", 1)
	sqltest.WantError(t, "open it with github.com/jackc/pgx/v5/stdlib", err)
}
