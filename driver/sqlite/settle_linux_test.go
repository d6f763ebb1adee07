package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/driver/sqlite"
)

// A database that comes back to its name before its log is opened with that log.
func TestSQLiteComesBeforeItsLog(t *testing.T) {
	for !comesBeforeItsLog(t) {
		t.Log("this machine took so long for two renames that nothing was tested")
	}
}

func comesBeforeItsLog(t *testing.T) (inTime bool) {
	path, ranges := newSQLite(t, order), new(drivertest.Ranges)
	s := openSQLite(t, path)
	advance(t, ranges, s)
	for _, rest := range []string{"", "-wal", "-shm"} {
		rename(t, path+rest, path+".away"+rest)
	}
	if g, err := s.Advance(t.Context(), "order", 1); err == nil {
		t.Fatalf("%v from a file that is away", g)
	}
	time.Sleep(20 * time.Millisecond) // the store has just written to the file; the clock of files is a coarse one
	back := time.Now()
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
	inTime = time.Since(back) < *sqlite.SettleTime
	if err := <-done; !inTime {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	advance(t, ranges, openSQLite(t, path))
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
	return true
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
	if _, err := sqlite.Connect(ctx, db); err == nil || !strings.Contains(err.Error(), "came to its name") {
		t.Errorf("%v, want a database that is not opened yet", err)
	}
}

// SQLite does not remove the log of a file that has left its name. The file may come back to it with
// later commits, and another server would read those before them in the log.
func TestSQLiteMovedAwayAndBack(t *testing.T) {
	defer func(before time.Duration) { *sqlite.SettleTime = before }(*sqlite.SettleTime)
	*sqlite.SettleTime = 0
	path, ranges := newSQLite(t, order), new(drivertest.Ranges)
	first := openSQLite(t, path)
	advance(t, ranges, first)
	rename(t, path, path+".moved")
	if g, err := first.Advance(t.Context(), "order", 5); err == nil {
		t.Fatalf("%v from a file that is away", g)
	}
	second := openSQLite(t, path+".moved")
	for range 3 {
		advance(t, ranges, second)
	}
	second.Close()
	rename(t, path+".moved", path)
	advance(t, ranges, openSQLite(t, path))
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// Of two servers with a file, one notices at once that another one has taken its place, and must not
// open that with the log that the other server still uses.
func TestSQLiteReplacedUnderTwo(t *testing.T) {
	path, ranges := newSQLite(t, order), new(drivertest.Ranges)
	quick, slow := openSQLite(t, path), openSQLite(t, path)
	advance(t, ranges, quick)
	advance(t, ranges, slow)
	raised := vacuumed(t, path)
	other := openSQLite(t, raised)
	if _, err := other.Advance(t.Context(), "order", 1000); err != nil {
		t.Fatal(err)
	}
	other.Close()
	time.Sleep(20 * time.Millisecond) // the clock of files is a coarse one
	rename(t, raised, path)
	if g, err := quick.Advance(t.Context(), "order", 5); err == nil { // it noticed before the call
		ranges.Add(g.Range)
	}
	advance(t, ranges, quick)
	advance(t, ranges, quick)
	if g, err := slow.Advance(t.Context(), "order", 5); err == nil {
		ranges.Add(g.Range)
	}
	advance(t, ranges, slow)
	advance(t, ranges, quick)
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// SQLite removes the log next to an empty database, which is that of another one.
func TestSQLiteEmptyBesideLog(t *testing.T) {
	path := newSQLite(t, order)
	advance(t, new(drivertest.Ranges), openSQLite(t, path))
	rename(t, path, path+".moved")
	before, err := os.ReadFile(path + "-wal")
	if err != nil || len(before) == 0 {
		t.Fatalf("%d bytes, %v: nothing is tested", len(before), err)
	}
	if err := initStore(t.Context(), sqliteDB(t, path), nil); err == nil || !strings.Contains(err.Error(), "belongs to another one") {
		t.Errorf("init: %v", err)
	}
	if after, err := os.ReadFile(path + "-wal"); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the log has %d bytes, %v, want the %d from before", len(after), err, len(before))
	}
}

func advance(t *testing.T, ranges *drivertest.Ranges, s *sqldb.Store) {
	t.Helper()
	g, err := s.Advance(t.Context(), "order", 5)
	if err != nil {
		t.Fatal(err)
	}
	ranges.Add(g.Range)
}
