package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
)

// A listing holds no connection while its reader thinks, and reads no more than is
// asked for.
func TestListingHoldsNothing(t *testing.T) {
	tags := benchTags()
	for i := range 2000 {
		tags = append(tags, segment.Tag{Name: fmt.Sprintf("z-%04d", i), Step: 1})
	}
	db := mysqlDB(t, mysqlConfig(t, mariadb, mariadb.NewDatabase(t)))
	if err := initStore(t.Context(), db, tags); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	s := openMySQL(t, db)
	testListingHoldsNothing(t, s, len(tags))
}

func testListingHoldsNothing(t *testing.T, s *mysql.Store, all int) {
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

// One row that was made by hand does not hide the others.
func TestMySQLIncompleteRows(t *testing.T) {
	table := strings.NewReplacer("NOT NULL DEFAULT '1'", "NULL", "int(11) NOT NULL", "int(11) NULL", "timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "timestamp NULL").Replace(javaTable)
	_, database := newMySQL(t, table, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('good', 7, 10), ('no-max', NULL, 10), ('no-step', 5, NULL), ('', 1, 1), ('new\nline', 1, 1)")
	var log strings.Builder
	s, err := storeOn(mysqlDB(t, mysqlConfig(t, mariadb, database)), &mysql.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := strings.Join(names(t, s), " "); got != "good@7 no-max@0 no-step@5" {
			t.Errorf("listed %q", got)
		}
	}
	if n := strings.Count(log.String(), "left out"); n != 2 {
		t.Errorf("%d lines about rows left out, want 2:\n%s", n, &log)
	}
	for _, n := range []int64{0, 5} {
		if g, err := s.Advance(t.Context(), "no-max", n); err == nil || !strings.Contains(err.Error(), `"no-max": the row has no max_id (NULL): set it`) {
			t.Errorf("no-max by %d: %v, %v", n, g, err)
		}
	}
	if g, err := s.Advance(t.Context(), "no-step", 0); err == nil || !strings.Contains(err.Error(), "no step (NULL): set one") {
		t.Errorf("no-step: %v, %v", g, err)
	}
	if g, err := s.Advance(t.Context(), "no-step", 3); err != nil || g.Range != (leaf.Range{Start: 5, End: 8}) || g.Step != 1 {
		t.Errorf("no-step by 3: %+v, %v", g, err)
	}
	// A max_id is not made up by a change of something else.
	if tag, err := s.Alter(t.Context(), "no-max", segment.Change{Step: new(int64(20))}); err == nil {
		t.Errorf("alter: %+v", tag)
	}
	if _, err := s.Alter(t.Context(), "no-max", segment.Change{MaxID: new(int64(500))}); err != nil {
		t.Errorf("alter: %v", err)
	}
	if g, err := s.Advance(t.Context(), "no-max", 0); err != nil || g.Range != (leaf.Range{Start: 500, End: 510}) {
		t.Errorf("after the mend: %v, %v", g, err)
	}
}

func TestMySQLNotCreated(t *testing.T) {
	s, database := newMySQL(t)
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("no table: %v, want segment.ErrNotCreated", err)
	}
	mariadb.Exec(t, "", "CREATE USER stranger@'127.0.0.1'")
	cfg := mysqlConfig(t, mariadb, database)
	cfg.User = "stranger"
	if _, err := openMySQL(t, mysqlDB(t, cfg)).Advance(t.Context(), "order", 1); err == nil || errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("no privilege: %v, which is not segment.ErrNotCreated", err)
	}
	// The missing table of a trigger is not the store's.
	mariadb.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1)",
		"CREATE TRIGGER audit AFTER UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO gone VALUES (1)")
	if _, err := s.Advance(t.Context(), "order", 1); err == nil || errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("a trigger's table: %v, which is not segment.ErrNotCreated", err)
	}
}

func names(t testing.TB, s segment.Store) []string {
	t.Helper()
	var all []string
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s@%d", tag.Name, tag.MaxID))
	}
	slices.Sort(all)
	return all
}
