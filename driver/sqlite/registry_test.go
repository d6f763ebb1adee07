package sqlite_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

func newSQLiteRegistry(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leaf.db")
	if err := initRegistry(t.Context(), sqliteDB(t, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

func openSQLiteRegistry(t testing.TB, path string) *sqldb.Registry {
	t.Helper()
	return suite.OpenRegistry(t, sqliteDB(t, path), &sqldb.Options{File: path})
}

// corrupt has a cell hold text, by way of a plain connection.
func corrupt(t testing.TB, db *sql.DB, id int64, text string) {
	t.Helper()
	for _, query := range []string{"DELETE FROM leaf_worker WHERE worker = ? AND record <> ?", "INSERT INTO leaf_worker (worker, record, update_time) VALUES (?, ?, 20260101000000)"} {
		if _, err := db.Exec(query, id, text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSQLiteRegistry(t *testing.T) {
	backend := func(path string) drivertest.RegistryBackend {
		return drivertest.RegistryBackend{
			Open:    func(t testing.TB) worker.Registry { return openSQLiteRegistry(t, path) },
			Corrupt: func(t testing.TB, id int64, text string) { corrupt(t, sqliteDB(t, path), id, text) },
		}
	}
	t.Run("alone", func(t *testing.T) {
		drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend { return backend(newSQLiteRegistry(t)) })
	})
	t.Run("beside a store", func(t *testing.T) {
		testserver.Long(t) // the same statements
		drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
			path := newSQLite(t, segment.Tag{Name: "order", Step: 10})
			if err := initRegistry(t.Context(), sqliteDB(t, path)); err != nil {
				t.Fatal(err)
			}
			return backend(path)
		})
	})
}

// A store and a registry share a file, in either order of creation, and neither init touches the
// other's table.
func TestSQLiteRegistryBesideStore(t *testing.T) {
	for _, storeFirst := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "leaf.db")
		db := sqliteDB(t, path)
		initStore := func() {
			if err := initStore(t.Context(), db, []segment.Tag{{Name: "order", MaxID: 1, Step: 10}}); err != nil {
				t.Fatal(err)
			}
		}
		if storeFirst {
			initStore()
		}
		wantRegistry := func(want bool) {
			t.Helper()
			if got, err := existsRegistry(t.Context(), db); got != want || err != nil {
				t.Errorf("registry exists: %v, %v, want %v", got, err, want)
			}
		}
		wantRegistry(false)
		if err := initRegistry(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		wantRegistry(true)
		if ok, err := existsStore(t.Context(), db); ok != storeFirst || err != nil {
			t.Errorf("store exists: %v, %v, want %v", ok, err, storeFirst)
		}
		if !storeFirst {
			initStore()
		}
		if err := initRegistry(t.Context(), db); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "leaf_worker") {
			t.Errorf("second init: %v, want fs.ErrExist", err)
		}
		s, err := storeOn(db, nil) // one database for both
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := registryOn(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1}); err != nil {
			t.Error(err)
		}
		if g, err := s.Advance(t.Context(), "order", 0); err != nil || g.Range != (leaf.Range{Start: 1, End: 11}) {
			t.Errorf("advance: %v, %v", g, err)
		}
	}
}

// Keepers get their turn while a store is at its busiest.
func TestSQLiteRegistryBesideBusyStore(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", MaxID: 1, Step: 10})
	if err := initRegistry(t.Context(), sqliteDB(t, path)); err != nil {
		t.Fatal(err)
	}
	s, r := openSQLite(t, path), openSQLiteRegistry(t, path)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Advance(t.Context(), "order", 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	old := worker.Record{Worker: 7}
	var longest time.Duration
	for term := range int64(30) {
		next := worker.Record{Worker: 7, Term: term + 1}
		start := time.Now()
		if _, err := r.Swap(t.Context(), old, next); err != nil {
			t.Error(err)
		}
		longest = max(longest, time.Since(start))
		old = next
	}
	close(stop)
	wg.Wait()
	t.Logf("the longest of 30 swaps took %v", longest)
}

func TestSQLiteRegistryRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Run("missing file", func(t *testing.T) {
		path := filepath.Join(dir, "missing.db")
		db, err := sql.Open("sqlite", "file:"+path+"?mode=rw")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		r, err := registryOn(db, &sqldb.Options{File: path})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		sqltest.WantNotCreated(t, r)
	})
	t.Run("store only", func(t *testing.T) { sqltest.WantNotCreated(t, openSQLiteRegistry(t, newSQLite(t))) })
	t.Run("another application's", func(t *testing.T) {
		db := sqliteDB(t, filepath.Join(dir, "other.db"))
		if _, err := db.Exec("CREATE TABLE customers (id INTEGER)"); err != nil {
			t.Fatal(err)
		}
		if err := initRegistry(t.Context(), db); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("init: %v, want one that wraps ErrInvalid", err)
		}
	})
	t.Run("newer format", func(t *testing.T) {
		path := newSQLite(t)
		if _, err := sqliteDB(t, path).Exec("PRAGMA user_version = 2"); err != nil {
			t.Fatal(err)
		}
		if err := initRegistry(t.Context(), sqliteDB(t, path)); !errors.Is(err, leaf.ErrUnsupported) {
			t.Errorf("init: %v, want one that wraps ErrUnsupported", err)
		}
	})
}

func TestSQLiteRegistryForgetsNothing(t *testing.T) {
	if epoch, err := openSQLiteRegistry(t, newSQLiteRegistry(t)).ServerEpoch(t.Context()); epoch.Lossy || err != nil {
		t.Errorf("epoch: %+v, %v", epoch, err)
	}
}
