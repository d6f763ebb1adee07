package ticket_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// The first tickets of two servers are Flickr's: odd ones from one, even ones from the
// other, in turn.
func TestTicketsAsFlickr(t *testing.T) {
	s := newSet(t, shared[:2]...)
	initSet(t, s.servers(t), ticket.Layout{}, order)
	store := open(t, s.servers(t), ticket.Layout{}, patient)
	var got drivertest.Ranges
	for range 20 {
		g := draw(t.Context(), t, store, 50, &got)
		if odd := g.Range.Start%2 == 1; g.Range.Len() != 1 || odd != (g.Source == "1") || g.Step != 100 || g.Server == "" {
			t.Errorf("%+v", g)
		}
	}
	if err := got.CheckExactly(leaf.Range{Start: 1, End: 21}); err != nil {
		t.Error(err)
	}
}

// Other programs run Flickr's statement alongside Leaf, on servers configured for it.
func TestBesideFlickr(t *testing.T) {
	s := newSet(t, shared[:2]...)
	initSet(t, s.servers(t), ticket.Layout{}, order)
	var got drivertest.Ranges
	var wg sync.WaitGroup
	for i := range 2 {
		cfg := config(t, s.hosts[i], s.databases[i])
		cfg.Params = map[string]string{"auto_increment_increment": "2", "auto_increment_offset": fmt.Sprint(i + 1)}
		db := pool(t, cfg)
		wg.Go(func() {
			for range 300 {
				var id int64
				err := db.QueryRow("REPLACE INTO Tickets64 (stub) VALUES ('a'); SELECT LAST_INSERT_ID()").Scan(&id)
				if err != nil { // Flickr's tables had no transactions, and so no deadlocks
					t.Log(err)
					continue
				}
				got.Add(leaf.Range{Start: id, End: id + 1})
			}
		})
		store := open(t, s.servers(t), ticket.Layout{}, patient)
		for range 2 {
			wg.Go(func() {
				for range 150 {
					g, err := store.Advance(context.Background(), "order", 1)
					if err != nil {
						t.Error(err)
						return
					}
					got.Add(g.Range)
				}
			})
		}
	}
	wg.Wait()
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if got.Count() < 1000 {
		t.Errorf("only %d tickets", got.Count())
	}
}

// A table that Flickr's own programs have used is taken over where it stands.
func TestTakeOverTickets(t *testing.T) {
	s := newSet(t, shared[:2]...)
	s.exec(t, 1, "CREATE TABLE Tickets64 (id bigint(20) unsigned NOT NULL auto_increment, stub char(1) NOT NULL default '',"+
		" PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB", "REPLACE INTO Tickets64 (id, stub) VALUES (1000, 'a')", "DELETE FROM Tickets64")
	initSet(t, s.servers(t), ticket.Layout{}, order)
	store := open(t, s.servers(t), ticket.Layout{}, patient)
	var got drivertest.Ranges
	for range 4 {
		if g := draw(t.Context(), t, store, 1, &got); g.Range.Start <= 1000 {
			t.Errorf("drew %v after 1000", g)
		}
	}
}

func TestUnfitTables(t *testing.T) {
	tables := map[string]string{
		"engine": "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE) ENGINE=MyISAM",
		"type":   "CREATE TABLE Tickets64 (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE) ENGINE=InnoDB",
		"unique": "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL) ENGINE=InnoDB",
		"column": "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, st CHAR(1) NOT NULL UNIQUE) ENGINE=InnoDB",
	}
	for name, table := range tables {
		s := newSet(t, shared[0])
		s.exec(t, 1, table)
		if err := initTickets(t.Context(), s.servers(t), ticket.Layout{}, nil); !errors.Is(err, leaf.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The statement draws nothing for an unknown tag, so LAST_INSERT_ID() is that of the
// draw before it.
func TestStickyLastInsertID(t *testing.T) {
	for _, layout := range []ticket.Layout{{}, {TablePerTag: true}, {Stride: 10}} {
		s := newSet(t, shared[0])
		initSet(t, s.servers(t), layout, order)
		servers := s.servers(t)
		servers[0].DB.SetMaxOpenConns(1)
		store := open(t, servers, layout, patient)
		var got drivertest.Ranges
		draw(t.Context(), t, store, 1, &got)
		if g, err := store.Advance(t.Context(), "gone", 1); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("%v: %v, %v", layout, g, err)
		}
		draw(t.Context(), t, store, 1, &got)
		if err := got.Check(); err != nil {
			t.Errorf("%v: %v", layout, err)
		}
	}
}

func TestBlocks(t *testing.T) {
	s := newSet(t, shared[:2]...)
	initSet(t, s.servers(t), ticket.Layout{Stride: 10}, segment.Tag{Name: "order", MaxID: 3, Step: 4})
	one := open(t, s.servers(t), ticket.Layout{Stride: 10}, patient)
	bySource := map[string][]leaf.Range{}
	for i := range 12 {
		g, err := one.Advance(t.Context(), "order", int64(i/2*2)) // 0 is the step
		if err != nil {
			t.Fatal(err)
		}
		bySource[g.Source] = append(bySource[g.Source], g.Range)
	}
	want := map[string][]leaf.Range{
		"1": {{Start: 3, End: 7}, {Start: 7, End: 9}, {Start: 9, End: 10}, {Start: 20, End: 26}, {Start: 26, End: 30}, {Start: 40, End: 50}},
		"2": {{Start: 10, End: 14}, {Start: 14, End: 16}, {Start: 16, End: 20}, {Start: 30, End: 36}, {Start: 36, End: 40}, {Start: 50, End: 60}},
	}
	for source, ranges := range want {
		for i, r := range ranges {
			if bySource[source][i] != r {
				t.Errorf("server %s: %v, want %v", source, bySource[source], ranges)
				break
			}
		}
	}
}

func TestNearTheEnd(t *testing.T) {
	const top = math.MaxInt64
	for _, layout := range []ticket.Layout{{}, {TablePerTag: true}, {Stride: 10}} {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout, segment.Tag{Name: "order", MaxID: top - 45, Step: 10})
		store := open(t, s.servers(t), layout, patient)
		var got drivertest.Ranges
		for {
			g, err := store.Advance(t.Context(), "order", 10)
			if err != nil {
				if !errors.Is(err, leaf.ErrOverflow) {
					t.Errorf("%v: %v", layout, err)
				}
				break
			}
			if got.Add(g.Range); g.Range.Start < top-45 || got.Count() > 46 {
				t.Fatalf("%v: %v", layout, g)
			}
		}
		if err := got.Check(); err != nil || got.Count() < 10 {
			t.Errorf("%v: %d IDs, %v", layout, got.Count(), err)
		}
		if _, err := store.Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrOverflow) {
			t.Errorf("%v: once more: %v", layout, err)
		}
	}
}

func TestLift(t *testing.T) {
	for _, layout := range []ticket.Layout{{}, {TablePerTag: true}, {Stride: 10}} {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout, order)
		store := open(t, s.servers(t), layout, patient)
		var got drivertest.Ranges
		draw(t.Context(), t, store, 1, &got)
		draw(t.Context(), t, store, 1, &got)
		for _, floor := range []int64{50_000, 10} { // the second is lower, and does nothing
			if err := store.Lift(t.Context(), "order", "2", floor); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			g := draw(t.Context(), t, store, 1, &got)
			if lifted := g.Range.Start >= 50_000; lifted != (g.Source == "2") {
				t.Errorf("%v: %+v", layout, g)
			}
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
		if err := store.Lift(t.Context(), "order", "3", 1); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%v: no such server: %v", layout, err)
		}
	}
}

// ROW_COUNT() must speak of the draw: REPLACE changes one row or two, a block one.
func TestRowsOfDraw(t *testing.T) {
	for _, c := range []struct {
		stride, rows int64
		ok           bool
	}{{0, -1, false}, {0, 1, true}, {0, 2, true}, {100, -1, false}, {100, 0, true}, {100, 1, true}, {100, 2, false}} {
		if err := ticket.JudgeRows(c.stride, c.rows); errors.Is(err, sqlstore.ErrSession) == c.ok {
			t.Errorf("stride %d, %d rows: %v", c.stride, c.rows, err)
		}
	}
}
