package sqlite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
)

// Listings neither wait for writers nor make them wait.
func TestSQLiteListsBesideTheWriter(t *testing.T) {
	path := newSQLite(t, order)
	s := openSQLite(t, path)
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	hold, err := sqliteDB(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	execOn(t, hold, "BEGIN IMMEDIATE") // the writer waits
	go s.Advance(t.Context(), "order", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	for tag, err := range s.Tags(ctx) {
		if err != nil || tag.Name != "order" {
			t.Errorf("%v, %v", tag, err)
		}
	}
	execOn(t, hold, "COMMIT")
}

// SQLite's own table refuses such rows; one that was made by hand may hold them.
func TestSQLiteIncompleteRows(t *testing.T) {
	path := newSQLite(t)
	db := sqliteDB(t, path)
	for _, statement := range []string{
		"DROP TABLE leaf_alloc", "CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id INTEGER, step INTEGER, description TEXT, update_time INTEGER)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('good', 7, 10), ('no-max', NULL, 10), ('no-step', 5, NULL), ('minus', 5, -3), ('low', -5, 3), (x'' || 'a' || char(10), 1, 1)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s := openSQLite(t, path)
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
}

// A listing holds no connection while its reader thinks, and reads no more than is
// asked for.
func TestListingHoldsNothing(t *testing.T) {
	tags := benchTags()
	for i := range 2000 {
		tags = append(tags, segment.Tag{Name: fmt.Sprintf("z-%04d", i), Step: 1})
	}
	db := sqliteDB(t, newSQLite(t, tags...))
	db.SetMaxOpenConns(1)
	s, err := storeOn(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	testListingHoldsNothing(t, s, len(tags))
}

func testListingHoldsNothing(t *testing.T, s *sqlite.Store, all int) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	listed := make(map[string]bool)
	for tag, err := range s.Tags(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if listed[tag.Name] {
			t.Errorf("%s is listed twice", tag.Name)
		}
		listed[tag.Name] = true
		if len(listed) > 1 {
			continue
		}
		if _, err := s.Advance(ctx, "tag-1", 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "z-1999"); err != nil {
			t.Fatal(err)
		}
	}
	if len(listed) != all-1 || listed["z-1999"] {
		t.Errorf("%d tags listed, want %d: the last was deleted before it was read", len(listed), all-1)
	}
}
