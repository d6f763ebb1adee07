package sqlite_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/segment"
)

func TestSQLiteSingleConnection(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", Step: 10})
	db := sqliteDB(t, path)
	db.SetMaxOpenConns(1)
	s, err := storeOn(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Advance(t.Context(), "order", 0); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Alter(t.Context(), "order", segment.Change{Step: new(int64(20))}); err != nil {
		t.Fatal(err)
	}
}

// Another process's open transaction does not hold callers for ever: they leave when they like, and
// the store then drops their requests.
func TestSQLiteBusy(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", Step: 10})
	other, err := sqliteDB(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	sqltest.Exec(t, other, "BEGIN IMMEDIATE")
	s := openSQLite(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := s.Advance(ctx, "order", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", err)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("the caller left only after %v", d)
	}
	sqltest.Exec(t, other, "COMMIT")
	g, err := s.Advance(t.Context(), "order", 1)
	if err != nil || g.Range != (leaf.Range{Start: 0, End: 1}) {
		t.Errorf("%v, %v: want [0, 1), the call that left must not be served", g, err)
	}
}

// One call that fails for a reason of its own does not touch its batch.
func TestSQLiteBatchOfGoodAndBad(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", Step: 10}, segment.Tag{Name: "full", MaxID: math.MaxInt64 - 1, Step: 10})
	hold, err := sqliteDB(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	s := openSQLite(t, path)
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	sqltest.Exec(t, hold, "BEGIN IMMEDIATE") // so that the calls gather
	var wg sync.WaitGroup
	var ranges drivertest.Ranges
	for i := range 60 {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				g, err := s.Advance(t.Context(), "order", 2)
				if err != nil {
					t.Error(err)
				}
				ranges.Add(g.Range)
			case 1:
				if _, err := s.Advance(t.Context(), "nope", 2); !errors.Is(err, leaf.ErrUnknownTag) {
					t.Errorf("unknown tag: %v", err)
				}
			case 2:
				if _, err := s.Advance(t.Context(), "full", 2); !errors.Is(err, leaf.ErrOverflow) {
					t.Errorf("full counter: %v", err)
				}
			}
		})
	}
	sqltest.Exec(t, hold, "COMMIT")
	wg.Wait()
	if err := ranges.CheckExactly(leaf.Range{Start: 1, End: 41}); err != nil {
		t.Error(err)
	}
}

// A statement that fails within a batch fails all of it, and nothing is handed out.
func TestSQLiteFailureFailsTheBatch(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "good", Step: 10}, segment.Tag{Name: "bad", Step: 10})
	db, s := sqliteDB(t, path), openSQLite(t, path)
	hold, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	sqltest.Exec(t, hold, `CREATE TRIGGER t BEFORE UPDATE ON leaf_alloc WHEN old.biz_tag = 'bad' BEGIN SELECT RAISE(ABORT, 'broken'); END`)
	var ranges drivertest.Ranges
	for range 20 {
		var wg sync.WaitGroup
		for _, tag := range []string{"good", "bad", "good", "bad"} {
			wg.Go(func() {
				g, err := s.Advance(t.Context(), tag, 1)
				if tag == "bad" && err == nil {
					t.Error("the broken tag was served")
				}
				if err == nil {
					ranges.Add(g.Range)
				}
			})
		}
		wg.Wait()
	}
	sqltest.Exec(t, hold, `DROP TRIGGER t`)
	g, err := s.Advance(t.Context(), "good", 1)
	if err != nil {
		t.Fatal(err)
	}
	ranges.Add(g.Range)
	// What failed was not committed, and what succeeded was: no gap, no repetition.
	if err := ranges.CheckExactly(leaf.Range{Start: 0, End: ranges.Count()}); err != nil {
		t.Error(err)
	}
	if g, err := s.Advance(t.Context(), "bad", 1); err != nil || g.Range.Start != 0 {
		t.Errorf("bad after the cure: %v, %v", g, err)
	}
}

func TestSQLiteCloseAnswersEverybody(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", Step: 10})
	s := openSQLite(t, path)
	var wg sync.WaitGroup
	var ranges drivertest.Ranges
	for range 32 {
		wg.Go(func() {
			for {
				g, err := s.Advance(t.Context(), "order", 1)
				if err != nil {
					if !errors.Is(err, leaf.ErrClosed) {
						t.Errorf("error %v, want ErrClosed", err)
					}
					return
				}
				ranges.Add(g.Range)
			}
		})
	}
	time.AfterFunc(50*time.Millisecond, func() { s.Close() })
	wg.Wait()
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
	g, err := openSQLite(t, path).Advance(t.Context(), "order", 1)
	if err != nil || g.Range.Start != ranges.Count() {
		t.Errorf("%v, %v after %d IDs: an answer was lost by closing", g, err, ranges.Count())
	}
}
