package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
)

// emptyDB is a file without tables, which does not exist yet.
func emptyDB(t testing.TB) *sql.DB {
	t.Helper()
	return sqliteDB(t, filepath.Join(t.TempDir(), "leaf.db"))
}

func TestStoreInit(t *testing.T) {
	suite.TestStoreInit(t, emptyDB(t), func(string) bool { return true })
}

func TestEnsure(t *testing.T) { suite.TestEnsure(t, emptyDB(t)) }

func TestDeletedByHand(t *testing.T) { suite.TestDeletedByHand(t, emptyDB(t)) }

func TestRegistryInit(t *testing.T) { suite.TestRegistryInit(t, emptyDB(t)) }

func TestInitTogether(t *testing.T) {
	suite.TestInits(t, func(t testing.TB) func(testing.TB) *sql.DB {
		path := filepath.Join(t.TempDir(), "leaf.db")
		return func(t testing.TB) *sql.DB { return sqliteDB(t, path) }
	}, nil)
}

func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaf.db")
	suite.TestIdentity(t, func(t testing.TB) *sql.DB { return sqliteDB(t, path) })
}

func TestListingHoldsNothing(t *testing.T) { suite.TestListingHoldsNothing(t, emptyDB(t)) }

// SQLite's own table refuses such rows; a handmade one may hold them.
func TestOddRows(t *testing.T) {
	path := newSQLite(t)
	db := sqliteDB(t, path)
	for _, statement := range []string{
		"DROP TABLE leaf_alloc", "CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id INTEGER, step INTEGER, description TEXT, update_time INTEGER)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (x'' || 'a' || char(10), 1, 1), " + sqltest.OddRows,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	sqltest.TestOddRows(t, openSQLite(t, path))
}

func TestOtherText(t *testing.T) {
	path := newSQLiteRegistry(t)
	corrupt(t, sqliteDB(t, path), 7, sqltest.OtherText)
	sqltest.TestOtherText(t, openSQLiteRegistry(t, path))
}
