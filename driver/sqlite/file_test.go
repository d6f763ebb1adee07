package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	modernc "modernc.org/sqlite"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/segment"
)

var order = segment.Tag{Name: "order", MaxID: 1, Step: 10}

// vacuumed returns a copy of the database, in the same folder.
func vacuumed(t *testing.T, path string) string {
	t.Helper()
	copied := filepath.Join(filepath.Dir(path), "copy.db")
	if _, err := sqliteDB(t, path).Exec("VACUUM INTO ?", copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

func openNamed(t *testing.T, file string, logger *slog.Logger) *sqldb.Store {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=rw")
	if err != nil {
		t.Fatal(err)
	}
	s, err := storeOn(db, &sqldb.Options{File: file, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); db.Close() })
	return s
}

func TestSQLiteCopyBecomesWAL(t *testing.T) {
	path := vacuumed(t, newSQLite(t, order))
	db := sqliteDB(t, path)
	db.SetMaxIdleConns(0) // a connection remembers the mode
	mode := func() (mode string) {
		t.Helper()
		if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil {
			t.Fatal(err)
		}
		return mode
	}
	if mode() != "delete" {
		t.Fatalf("the copy is in mode %s: nothing is tested", mode())
	}
	if _, err := openSQLite(t, path).Advance(t.Context(), "order", 1); err != nil || mode() != "wal" {
		t.Errorf("journal_mode %s, %v", mode(), err)
	}
}

// A store stops when its file has left its name: others would issue the same ranges from the new
// file.
func TestSQLiteFileReplaced(t *testing.T) {
	tests := map[string]func(t *testing.T, path string){
		"replaced": func(t *testing.T, path string) { rename(t, vacuumed(t, path), path) },
		"removed":  func(t *testing.T, path string) { remove(t, path) },
		"moved":    func(t *testing.T, path string) { rename(t, path, path+".old") },
	}
	for name, harm := range tests {
		t.Run(name, inBubble(func(t *testing.T) {
			path := newSQLite(t, order)
			s := openSQLite(t, path)
			if _, err := s.Advance(t.Context(), "order", 5); err != nil {
				t.Fatal(err)
			}
			harm(t, path)
			if g, err := s.Advance(t.Context(), "order", 100); !errors.Is(err, segment.ErrStoreDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v, %v: want an error that names the file and the mend", g, err)
			}
		}))
	}
}

// inBubble runs a test on a clock that stops while anything runs. Each second a writer checks its
// file and opens a new one after a replacement: that must not interrupt the steps of the test.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// A process that opens a database without its log or shared memory sees neither the owner's later
// writes nor its locks.
func TestSQLiteFilesBesideRemoved(t *testing.T) {
	for name, suffixes := range map[string][]string{"log": {"-wal"}, "shared memory": {"-shm"}, "both": {"-wal", "-shm"}} {
		t.Run(name, inBubble(func(t *testing.T) {
			path := newSQLite(t, order)
			s := openSQLite(t, path)
			if _, err := s.Advance(t.Context(), "order", 5); err != nil {
				t.Fatal(err)
			}
			for _, suffix := range suffixes {
				remove(t, path+suffix)
			}
			if g, err := s.Advance(t.Context(), "order", 100); err == nil || !strings.Contains(err.Error(), path+suffixes[0]) {
				t.Errorf("%v, %v: want an error that names the file", g, err)
			}
			if g, err := s.Advance(t.Context(), "order", 1); err != nil || g.Range.Start != 106 {
				t.Errorf("afterwards: %v, %v, want what follows on all that was written", g, err)
			}
		}))
	}
}

// No process may open a file that another one uses with another log. The owner notices within a
// second that it has to give the file up, and its writes are then in the file.
func TestSQLiteUsedWithAnotherLog(t *testing.T) {
	tests := map[string]func(t *testing.T, path string) string{
		"moved":                 func(t *testing.T, path string) string { rename(t, path, path+".new"); return path + ".new" },
		"log removed":           func(t *testing.T, path string) string { remove(t, path+"-wal"); return path },
		"shared memory removed": func(t *testing.T, path string) string { remove(t, path+"-shm"); return path },
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			path := newSQLite(t, order)
			ranges := new(drivertest.Ranges)
			advance := func(s *sqldb.Store) {
				t.Helper()
				g, err := s.Advance(t.Context(), "order", 5)
				if err != nil {
					t.Fatal(err)
				}
				ranges.Add(g.Range)
			}
			first := openSQLite(t, path)
			advance(first)
			path = harm(t, path)
			second := openSQLite(t, path)
			for range 3 {
				advance(second)
			}
			if err := ranges.CheckExactly(leaf.Range{Start: 1, End: 21}); err != nil {
				t.Error(err)
			}
		})
	}
}

// SQLite keeps a log for each name of a file.
func TestSQLiteHardLink(t *testing.T) {
	path := newSQLite(t, order)
	name := filepath.Join(t.TempDir(), "other.db")
	first, second := openSQLite(t, path), openSQLite(t, name)
	if _, err := first.Advance(t.Context(), "order", 5); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, name); err != nil {
		t.Fatal(err)
	}
	const advice = "mount or link its folder"
	for _, s := range []*sqldb.Store{second, first} {
		for range 2 {
			if g, err := s.Advance(t.Context(), "order", 5); err == nil || !strings.Contains(err.Error(), advice) {
				t.Errorf("%v, %v, want an error that says: %s", g, err, advice)
			}
		}
		for tag, err := range s.Tags(t.Context()) {
			if err == nil {
				t.Errorf("listed %v", tag)
			}
		}
	}
	for what, err := range map[string]error{
		"init store":    initStore(t.Context(), sqliteDB(t, name), nil),
		"init registry": initRegistry(t.Context(), sqliteDB(t, name)),
	} {
		if err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: %v", what, err)
		}
	}
	remove(t, name)
	if g, err := first.Advance(t.Context(), "order", 1); err != nil || g.Range.Start != 11 {
		t.Errorf("with one name again: %v, %v", g, err)
	}
}

// SQLite follows symbolic links before it looks for the log.
func TestSQLiteSymbolicLinks(t *testing.T) {
	path, dir := newSQLite(t, order), t.TempDir()
	file, folder := filepath.Join(dir, "file.db"), filepath.Join(dir, "folder")
	for name, target := range map[string]string{file: path, folder: filepath.Dir(path)} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	stores := []*sqldb.Store{openSQLite(t, path), openSQLite(t, file), openSQLite(t, filepath.Join(folder, filepath.Base(path)))}
	ranges := new(drivertest.Ranges)
	for range 10 {
		for _, s := range stores {
			g, err := s.Advance(t.Context(), "order", 5)
			if err != nil {
				t.Fatal(err)
			}
			ranges.Add(g.Range)
		}
	}
	if err := ranges.CheckExactly(leaf.Range{Start: 1, End: 151}); err != nil {
		t.Error(err)
	}
}

// Opening a large database takes a while, in which somebody may replace it: here right after the
// connection.
func TestSQLiteFileReplacedWhileItOpens(t *testing.T) {
	path := newSQLite(t, order)
	other := vacuumed(t, path)
	connector, err := modernc.NewConnector("file:" + path + "?mode=rw&_pragma=user_version")
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(&afterConnect{Connector: connector, do: func() { rename(t, other, path) }})
	first, err := storeOn(db, &sqldb.Options{File: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Close(); db.Close() })
	if g, err := first.Advance(t.Context(), "order", 100); err == nil {
		t.Errorf("%v from the file that was replaced", g.Range)
	}
	if _, err := first.Advance(t.Context(), "order", 100); err != nil {
		t.Errorf("the new file: %v", err)
	}
}

// afterConnect does something once, after the first connection was made.
type afterConnect struct {
	driver.Connector
	once sync.Once
	do   func()
}

func (a *afterConnect) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := a.Connector.Connect(ctx)
	a.once.Do(a.do)
	return conn, err
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// The name under which people know the file counts, not where it led once.
func TestSQLiteLinkTurned(t *testing.T) {
	inBubble(func(t *testing.T) {
		path := newSQLite(t, order)
		other, link := vacuumed(t, path), filepath.Join(t.TempDir(), "link.db")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		s := openNamed(t, link, nil)
		if _, err := s.Advance(t.Context(), "order", 5); err != nil {
			t.Fatal(err)
		}
		remove(t, link)
		if err := os.Symlink(other, link); err != nil {
			t.Fatal(err)
		}
		if g, err := s.Advance(t.Context(), "order", 100); err == nil {
			t.Errorf("%v from the file that the link led to before", g)
		}
	})(t)
}

// An old connection of the pool must not lead to a vanished file.
func TestSQLiteIdleConnection(t *testing.T) {
	path := newSQLite(t, order)
	db := sqliteDB(t, path)
	if ok, err := existsStore(t.Context(), db); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s, err := storeOn(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	rename(t, vacuumed(t, path), path)
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	first, err := s.Advance(t.Context(), "order", 10)
	if err != nil {
		t.Fatal(err)
	}
	second, err := openSQLite(t, path).Advance(t.Context(), "order", 10)
	if err != nil || first.Range.Overlaps(second.Range) {
		t.Errorf("%v and %v, %v", first.Range, second.Range, err)
	}
}

func TestSQLiteDamaged(t *testing.T) {
	path := newSQLite(t, order)
	whole, err := os.ReadFile(vacuumed(t, path))
	if err != nil {
		t.Fatal(err)
	}
	garbage := append(append([]byte{}, whole[:100]...), make([]byte, len(whole)-100)...)
	for name, content := range map[string]string{
		"600 bytes": string(whole[:600]), "one page": string(whole[:4096]), "5000 bytes": string(whole[:5000]), "zeros": string(garbage),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leaf.db")
			writeFile(t, path, content)
			s := openSQLite(t, path)
			_, err := s.Advance(t.Context(), "order", 1)
			wantDamaged(t, err)
			for _, err := range s.Tags(t.Context()) {
				wantDamaged(t, err)
			}
		})
	}
}

func wantDamaged(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, segment.ErrStoreDamaged) || !strings.Contains(err.Error(), "is damaged: restore it from a backup") || errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("error %v", err)
	}
}

func TestSQLiteNotCreated(t *testing.T) {
	dir := t.TempDir()
	empty, folder := filepath.Join(dir, "empty.db"), filepath.Join(dir, "folder.db")
	writeFile(t, empty, "")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{
		filepath.Join(dir, "missing.db"):       true,
		filepath.Join(dir, "no", "missing.db"): true,
		empty:                                  true,
		folder:                                 false, // as a file whose rights are wrong: it is there
	}
	for path, want := range tests {
		_, err := openNamed(t, path, nil).Advance(t.Context(), "order", 1)
		if err == nil || errors.Is(err, segment.ErrNotCreated) != want {
			t.Errorf("%s: %v, want segment.ErrNotCreated: %v", path, err, want)
		}
	}
}

// What stays broken is logged once, as it is explained to callers.
func TestSQLiteLogsTroubleOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaf.db")
	var log strings.Builder
	s := openNamed(t, path, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		for range 5 {
			if _, err := s.Advance(t.Context(), "order", 1); err == nil {
				t.Fatal("there is no file")
			}
		}
		if err := initStore(t.Context(), sqliteDB(t, path), []segment.Tag{order}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := s.Advance(t.Context(), "order", 1); err != nil {
				t.Fatal(err)
			}
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			remove(t, path+suffix)
		}
	}
	s.Close()
	text := log.String()
	// Not there, replaced by nothing, not there; and twice well again.
	if n := strings.Count(text, "sqlite transaction failed"); n != 3 {
		t.Errorf("%d failures logged, want 3", n)
	}
	if n := strings.Count(text, "sqlite store works again"); n != 2 {
		t.Errorf("%d recoveries logged, want 2", n)
	}
	if !strings.Contains(text, "the store was not created") || strings.Count(text, "file="+path) != 5 {
		t.Errorf("the log does not say where and what to do")
	}
	if t.Failed() {
		t.Log(text)
	}
}
