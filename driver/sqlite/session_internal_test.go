package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/leaf-id/leaf/driver/sqldb"
)

// In a rollback journal FULL leaves out the sync of the folder, and with it the
// commit may be lost in a power cut.
func TestSQLiteSynchronous(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "leaf.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := newWriter(db, allocTable, sqldb.Options{}).Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s, err := openSession(db, "", allocTable)
	if err != nil {
		t.Fatal(err)
	}
	defer s.drop()
	var level int
	const extra = 3
	if err := s.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level); err != nil || level != extra {
		t.Errorf("synchronous = %d, %v, want %d", level, err, extra)
	}
}
