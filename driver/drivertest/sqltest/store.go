package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/segment"
)

// TestStoreInit creates a store in an empty database, whose server is as ok has it.
func (d Driver) TestStoreInit(t *testing.T, db *sql.DB, ok func(server string) bool) {
	ctx := t.Context()
	if exists, err := d.Exists(ctx, db); exists || err != nil {
		t.Errorf("exists before init: %v, %v", exists, err)
	}
	if _, err := d.OpenStore(t, db).Advance(ctx, "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("advance before init: %v, want segment.ErrNotCreated", err)
	}
	twice := []segment.Tag{{Name: "a", Step: 1}, {Name: "a", Step: 1}}
	if err := d.Init(ctx, db, twice); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("init with one tag twice: %v, want leaf.ErrInvalid", err)
	}
	tags := []segment.Tag{{Name: "order", MaxID: 1, Step: 2000, Options: segment.Describe("x")}, {Name: "Order", Step: 1}}
	if err := d.Init(ctx, db, tags); err != nil {
		t.Fatal(err)
	}
	if exists, err := d.Exists(ctx, db); !exists || err != nil {
		t.Errorf("exists after init: %v, %v", exists, err)
	}
	if err := d.Init(ctx, db, nil); !errors.Is(err, fs.ErrExist) || !strings.HasSuffix(err.Error(), " has a table leaf_alloc already") {
		t.Errorf("second init: %v, want fs.ErrExist in plain words", err)
	}
	s := d.OpenStore(t, db)
	g, err := s.Advance(ctx, "order", 0)
	if err != nil || g.Range != (leaf.Range{Start: 1, End: 2001}) || g.Step != 2000 || !ok(g.Server) {
		t.Errorf("first range %+v, %v", g, err)
	}
	if got := strings.Join(Names(t, s), " "); got != "Order@0 order@2001" {
		t.Errorf("tags %q", got)
	}
}

// TestEnsure creates tables and tags in an empty database, then asks for more tags.
func (d Driver) TestEnsure(t *testing.T, db *sql.DB) {
	ctx := t.Context()
	both, err := d(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { both.Close() })
	order, invoice := segment.Tag{Name: "order", MaxID: 1, Step: 10}, segment.Tag{Name: "invoice", MaxID: 5, Step: 1}
	for i, tags := range [][]segment.Tag{{order}, {order, invoice}, {order, invoice}} {
		if err := both.Ensure(ctx, tags); err != nil {
			t.Fatal(err)
		}
		if err := both.EnsureRegistry(ctx); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := both.Store().Advance(ctx, "order", 10); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := strings.Join(Names(t, both.Store()), " "); got != "invoice@5 order@11" {
		t.Errorf("tags %q, want invoice@5 order@11", got)
	}
	if all, err := both.Registry().List(ctx); len(all) != 0 || err != nil {
		t.Errorf("registry: %v, %v", all, err)
	}
	if err := both.Ensure(ctx, []segment.Tag{{Name: "", Step: 1}}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a tag without a name: %v, want leaf.ErrInvalid", err)
	}
}

// TestListingHoldsNothing checks, in an empty database, that a listing holds no connection while
// its reader thinks, and reads no more than requested.
func (d Driver) TestListingHoldsNothing(t *testing.T, db *sql.DB) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tags := BenchTags()
	for i := range 2000 {
		tags = append(tags, segment.Tag{Name: fmt.Sprintf("z-%04d", i), Step: 1})
	}
	if err := d.Init(ctx, db, tags); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	s := d.OpenStore(t, db)
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
	if len(listed) != len(tags)-1 || listed["z-1999"] {
		t.Errorf("%d tags listed, want %d: the last was deleted before it was read", len(listed), len(tags)-1)
	}
}

// OddRows is the values of hand-made rows, in the columns biz_tag, max_id and
// step. TestOddRows expects them, and beside them rows that cannot be tags.
const OddRows = `('good', 7, 10), ('low', -5, 3), ('minus', 5, -3), ('no-max', NULL, 10), ('no-step', 5, NULL)`

// TestOddRows checks that a row of a table made by hand does not hide the others, and says
// what it lacks.
func TestOddRows(t *testing.T, s *sqldb.Store) {
	t.Helper()
	if got := strings.Join(Names(t, s), " "); got != "good@7 low@-5 minus@5 no-max@0 no-step@5" {
		t.Errorf("listed %q", got)
	}
	for tag, want := range map[string]string{"no-max": "no max_id (NULL): set it", "no-step": "no step (NULL): set one", "minus": "step -3",
		"low": "negative max_id"} {
		if g, err := s.Advance(t.Context(), tag, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", tag, g, err, want)
		}
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

// TestDeletedByHand checks, in an empty database, that a new tag continues above one whose row of
// leaf_alloc a person deleted, as with Java Leaf.
func (d Driver) TestDeletedByHand(t *testing.T, db *sql.DB) {
	ctx := t.Context()
	if err := d.Init(ctx, db, nil); err != nil {
		t.Fatal(err)
	}
	const past = "2024-02-29"
	s := d.OpenStore(t, db)
	plain := segment.TagOptions{}
	strict := segment.TagOptions{segment.OptionOrder: segment.OrderStrictLossy}
	daily := segment.TagOptions{segment.OptionPeriod: "day"}
	masked := segment.TagOptions{segment.OptionMask: "k1:10^6:" + drivertest.MaskKeys["k1"].Fingerprint()}
	for i, c := range []struct {
		old, new segment.TagOptions
		want     int64
	}{
		{strict, strict, 5000}, {strict, plain, 5000}, {strict, daily, 5000}, {daily, daily, 5001}, {daily, strict, 5000},
		{masked, strict, 1_000_000}, {masked, plain, 1_000_000},
	} {
		name := fmt.Sprintf("tag-%d", i)
		if err := s.Create(ctx, segment.Tag{Name: name, MaxID: 5000, Step: 10, Options: c.old}); err != nil {
			t.Fatal(err)
		}
		if c.old.Periodic() {
			if _, err := s.AdvanceStrict(ctx, name, past, 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.ExecContext(ctx, "DELETE FROM leaf_alloc WHERE biz_tag = '"+name+"'"); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(ctx, segment.Tag{Name: name, MaxID: 1, Step: 10, Options: c.new}); err != nil {
			t.Fatal(err)
		}
		advance := func() (segment.Grant, error) { return s.AdvanceStrict(ctx, name, "", 1) }
		switch {
		case c.new.Periodic():
			advance = func() (segment.Grant, error) { return s.AdvanceStrict(ctx, name, past, 1) }
		case !c.new.Strict():
			advance = func() (segment.Grant, error) { return s.Advance(ctx, name, 1) }
		}
		if g, err := advance(); err != nil || g.Range.Start != c.want {
			t.Errorf("%v after %v, deleted by hand: %v, %v, want %d", c.new, c.old, g.Range, err, c.want)
		}
	}
}
