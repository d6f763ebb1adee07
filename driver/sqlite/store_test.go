package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/segment"
)

// sqliteDB opens path as a plain database/sql user would.
func sqliteDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newSQLite(t testing.TB, tags ...segment.Tag) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leaf.db")
	if err := initStore(t.Context(), sqliteDB(t, path), tags); err != nil {
		t.Fatal(err)
	}
	return path
}

func openSQLite(t testing.TB, path string) *sqldb.Store {
	t.Helper()
	return suite.OpenStore(t, sqliteDB(t, path))
}

func TestSQLiteStore(t *testing.T) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		path := newSQLite(t)
		return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return openSQLite(t, path) }}
	})
}

func TestSQLiteOpenCreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaf.db")
	s := openSQLite(t, path)
	if m, _ := filepath.Glob(path + "*"); len(m) != 0 {
		t.Fatalf("opening made %v", m)
	}
	_, err := s.Advance(t.Context(), "order", 1)
	if !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("error %v, want segment.ErrNotCreated", err)
	}
}

func TestSQLiteInitRefuses(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", MaxID: 7, Step: 10})
	err := initStore(t.Context(), sqliteDB(t, path), nil)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("second init: %v, want fs.ErrExist", err)
	}
	if g, err := openSQLite(t, path).Advance(t.Context(), "order", 1); err != nil || g.Range.Start != 7 {
		t.Errorf("after the second init: %v, %v", g, err)
	}
	other := sqliteDB(t, filepath.Join(t.TempDir(), "other.db"))
	if _, err := other.Exec("CREATE TABLE customers (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if err := initStore(t.Context(), other, nil); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("init of another application's database: %v", err)
	}
	var journal string
	if err := other.QueryRow("PRAGMA journal_mode").Scan(&journal); err != nil || journal != "delete" {
		t.Errorf("its journal_mode is now %q, %v: it was changed", journal, err)
	}
	twice := []segment.Tag{{Name: "a", Step: 1}, {Name: "a", Step: 1}}
	if err := initStore(t.Context(), sqliteDB(t, filepath.Join(t.TempDir(), "x.db")), twice); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("init with one tag twice: %v", err)
	}
}

func TestSQLiteAdvice(t *testing.T) {
	tests := map[string]struct {
		params, want string
		change       func(ctx context.Context, s *sqldb.Store) error
	}{
		"read-only": {"mode=ro", "read-only", func(ctx context.Context, s *sqldb.Store) error {
			_, err := s.Advance(ctx, "order", 1)
			return err
		}},
		"full disk": {"_pragma=max_page_count(8)", "disk is full", func(ctx context.Context, s *sqldb.Store) (err error) {
			for i := 0; i < 500 && err == nil; i++ {
				err = s.Create(ctx, segment.Tag{Name: fmt.Sprint(i), Step: 1, Options: segment.Describe(strings.Repeat("x", 200))})
			}
			return err
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := newSQLite(t, segment.Tag{Name: "order", Step: 10})
			db, err := sql.Open("sqlite", "file:"+path+"?"+tt.params)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			s, err := storeOn(db, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := tt.change(t.Context(), s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if g, err := openSQLite(t, path).Advance(t.Context(), "order", 1); err != nil || g.Range.Start != 0 {
				t.Errorf("another store, afterwards: %v, %v", g, err)
			}
		})
	}
}

// The store refuses each of these at the first call, and accepts a mended file later: it checks
// each time.
func TestSQLiteRefusesUnfitFiles(t *testing.T) {
	tests := map[string]struct{ harm, heal, want string }{
		"newer format":        {"PRAGMA user_version = 2", "PRAGMA user_version = 1", "use a newer Leaf"},
		"unknown format":      {"PRAGMA user_version = -1", "PRAGMA user_version = 1", "unknown format"},
		"another application": {"PRAGMA application_id = 5", "PRAGMA application_id = 0x4c656166", "not made by Leaf"},
		"no table":            {"ALTER TABLE leaf_alloc RENAME TO gone", "ALTER TABLE gone RENAME TO leaf_alloc", "not created: the database has no table leaf_alloc"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := newSQLite(t, segment.Tag{Name: "order", Step: 10})
			db, s := sqliteDB(t, path), openSQLite(t, path)
			if _, err := db.Exec(tt.harm); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
			if _, err := db.Exec(tt.heal); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(t.Context(), "order", 1); err != nil {
				t.Errorf("after the cure: %v", err)
			}
		})
	}
}

func TestSQLiteRefusesMemory(t *testing.T) {
	db, err := sql.Open("sqlite", "file:refused?mode=memory&cache=shared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keep, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	if err := initStore(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	s, err := storeOn(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("database in memory: %v, want ErrUnsupported", err)
	}
}

func TestSQLiteNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaf.db")
	writeFile(t, path, strings.Repeat("this is not a database\n", 100))
	_, err := openSQLite(t, path).Advance(t.Context(), "order", 1)
	if err == nil || !strings.Contains(err.Error(), "not an SQLite database") {
		t.Errorf("error %v", err)
	}
}

func TestSQLiteInitWithOptions(t *testing.T) {
	want := segment.Tag{Name: "order", MaxID: 1, Step: 3, Options: segment.TagOptions{"description": "d", "later": "x"}}
	s := openSQLite(t, newSQLite(t, segment.Tag{Name: "plain", Step: 1}, want))
	n := 0
	for tag, err := range s.Tags(t.Context()) {
		if n++; err != nil || len(tag.Options) != map[string]int{"order": 2}[tag.Name] {
			t.Errorf("%+v, %v", tag, err)
		}
	}
	if n != 2 {
		t.Errorf("%d tags", n)
	}
}

func TestSQLiteKeepsTheTable(t *testing.T) {
	path := newSQLite(t)
	s := openSQLite(t, path)
	want := segment.Tag{Name: "Ünïcode 订单 😀 ", MaxID: 5, Step: 3, Options: segment.Describe("a; 'quoted' \"one\"")}
	if err := s.Create(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	for tag, err := range s.Tags(t.Context()) {
		age := time.Since(tag.Updated)
		tag.Updated = time.Time{}
		if err != nil || !tag.Same(want) || age < 0 || age > time.Minute {
			t.Errorf("%+v of age %v, %v, want %+v", tag, age, err, want)
		}
	}
	db := sqliteDB(t, path)
	var journal string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&journal); err != nil || journal != "wal" {
		t.Errorf("journal_mode %q, %v", journal, err)
	}
	for _, bad := range []string{"max_id = -1", "step = 0", "step = 'x'", "max_id = NULL"} {
		if _, err := db.Exec("UPDATE leaf_alloc SET " + bad); err == nil {
			t.Errorf("the table took %s", bad)
		}
	}
}
