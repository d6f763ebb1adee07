package sqlite_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/sqlite"
)

// A database that comes back to its name before its log is opened with that log.
func TestSQLiteComesBeforeItsLog(t *testing.T) {
	defer func(before time.Duration) { *sqlite.SettleTime = before }(*sqlite.SettleTime)
	*sqlite.SettleTime = time.Minute // a busy machine may need a second between the steps of this test
	path := newSQLite(t, order)
	s := openSQLite(t, path)
	ranges := new(drivertest.Ranges)
	first, err := s.Advance(t.Context(), "order", 5)
	if err != nil {
		t.Fatal(err)
	}
	ranges.Add(first.Range)
	for _, rest := range []string{"", "-wal", "-shm"} {
		rename(t, path+rest, path+".away"+rest)
	}
	if g, err := s.Advance(t.Context(), "order", 1); err == nil {
		t.Fatalf("%v from a file that is away", g)
	}
	time.Sleep(20 * time.Millisecond) // the store has just written to the file; the clock of files is a coarse one
	rename(t, path+".away", path)
	done := make(chan error, 1)
	other := openSQLite(t, path)
	go func() {
		g, err := other.Advance(t.Context(), "order", 5)
		ranges.Add(g.Range)
		done <- err
	}()
	time.Sleep(100 * time.Millisecond)
	for _, rest := range []string{"-wal", "-shm"} {
		rename(t, path+".away"+rest, path+rest)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	last, err := openSQLite(t, path).Advance(t.Context(), "order", 5)
	if err != nil {
		t.Fatal(err)
	}
	ranges.Add(last.Range)
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// The check for other users opens the database. SQLite would then remove a log that comes during
// the check, so a database that came just now is left alone.
func TestSQLiteIsNotOpenedBeforeItsLog(t *testing.T) {
	defer func(before time.Duration) { *sqlite.SettleTime = before }(*sqlite.SettleTime)
	*sqlite.SettleTime = time.Minute
	path := newSQLite(t, order)
	if _, err := openSQLite(t, path).Advance(t.Context(), "order", 5); err != nil { // a user, which the check would find
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // the clock of files is a coarse one
	rename(t, path, path+".moved")
	db, err := sql.Open("sqlite", "file:"+path+".moved")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := sqlite.Connect(ctx, db); err == nil || !strings.Contains(err.Error(), "without its log") {
		t.Errorf("%v, want a database that is not opened yet", err)
	}
}
