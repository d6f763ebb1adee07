package ticket_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/segment"
)

func TestOpenRefuses(t *testing.T) {
	s := newSet(t, shared[0])
	one := s.servers(t)
	tests := map[string]struct {
		servers []ticket.Server
		layout  ticket.Layout
	}{
		"none":        {},
		"twice":       {servers: []ticket.Server{one[0], one[0]}},
		"nameless":    {servers: []ticket.Server{{DB: one[0].DB}}},
		"no database": {servers: []ticket.Server{{Name: "a"}}},
		"stride":      {servers: one, layout: ticket.Layout{Stride: -1}},
		"both":        {servers: one, layout: ticket.Layout{Stride: 1, TablePerTag: true}},
	}
	for name, tt := range tests {
		if _, err := ticket.New(tt.servers, &ticket.Options{Layout: tt.layout}); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: open: %v", name, err)
		}
		if err := initTickets(t.Context(), tt.servers, tt.layout, nil); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: init: %v", name, err)
		}
	}
}

// The store recognises servers of different sets, whatever the URL says.
func TestServersThatDoNotFit(t *testing.T) {
	blocks := ticket.Layout{Stride: 10}
	a, b := newSet(t, shared[:]...), newSet(t, shared[:2]...)
	initSet(t, a.servers(t, 1, 2), blocks, order)
	initSet(t, b.servers(t), blocks, order)
	copied := newSet(t, shared[:2]...)
	initSet(t, copied.servers(t), blocks, order)
	copied.exec(t, 2, "UPDATE leaf_ticket SET number = 1", "UPDATE leaf_ticket_tag SET next_id = 0")
	newer := newSet(t, shared[:2]...)
	initSet(t, newer.servers(t), blocks, order)
	newer.exec(t, 1, "UPDATE leaf_ticket SET format = 2")
	older := newSet(t, shared[:2]...)
	initSet(t, older.servers(t), blocks, order)
	older.exec(t, 1, "UPDATE leaf_ticket SET generation = 2", "UPDATE leaf_ticket_tag SET generation = 2")
	mixed := []ticket.Server{a.servers(t, 1)[0], b.servers(t, 2)[0]}
	tests := map[string]struct {
		servers []ticket.Server
		layout  ticket.Layout
		want    string
		left    bool // one server is fit for use
	}{
		"too many":          {a.servers(t), blocks, "names 3 servers, this one is number 1 of 2", false},
		"too few":           {a.servers(t, 1), blocks, "names 1 servers", false},
		"other block size":  {a.servers(t, 1, 2), ticket.Layout{Stride: 20}, "which never changes", false},
		"tickets of blocks": {a.servers(t, 1, 2), ticket.Layout{}, "which never changes", false},
		"sets mixed":        {mixed, blocks, "another set", true},
		"a copy":            {copied.servers(t), blocks, "the same number", true},
		"newer format":      {newer.servers(t), blocks, "format 2", true},
		"left behind":       {older.servers(t), blocks, "older generation", true},
	}
	for name, tt := range tests {
		var log logbook
		s := open(t, tt.servers, tt.layout, log.options())
		var got drivertest.Ranges
		sources := make(map[string]bool)
		for range 10 {
			g, err := s.Advance(t.Context(), "order", 1)
			switch {
			case err == nil:
				got.Add(g.Range)
				sources[g.Server+g.Source] = true
			case tt.left || !strings.Contains(err.Error(), tt.want):
				t.Errorf("%s: %v, want one that says %q", name, err, tt.want)
			}
		}
		if log.count(tt.want) == 0 {
			t.Errorf("%s: the log does not say %q:\n%s", name, tt.want, log.String())
		}
		if err := got.Check(); err != nil || !tt.left && len(sources) > 0 {
			t.Errorf("%s: %v were used, %v", name, sources, err)
		}
	}
}

// A counter that somebody moved into a block of another server is not used.
func TestCounterInAnotherBlock(t *testing.T) {
	s := newSet(t, shared[:2]...)
	initSet(t, s.servers(t), ticket.Layout{Stride: 10}, order)
	s.exec(t, 1, "UPDATE leaf_ticket_tag SET next_id = 1010")
	s.exec(t, 2, "DELETE FROM leaf_ticket")
	store := open(t, s.servers(t), ticket.Layout{Stride: 10}, patient)
	_, err := store.Advance(t.Context(), "order", 1)
	if err == nil || !strings.Contains(err.Error(), "not in a block of server 1 of 2") || !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("%v", err)
	}
}

func TestMessages(t *testing.T) {
	s := newSet(t, shared[0])
	initSet(t, s.servers(t), ticket.Layout{}, order)
	database := s.databases[0]
	s.exec(t, 1, "CREATE OR REPLACE USER reader@'127.0.0.1' IDENTIFIED BY 'pw'", "GRANT SELECT ON "+database+".* TO reader@'127.0.0.1'")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	tests := map[string]struct {
		change func(*mysql.Config)
		want   string
	}{
		"port":       {func(c *mysql.Config) { c.Addr = free.Addr().String() }, "no server answers there"},
		"password":   {func(c *mysql.Config) { c.User, c.Passwd = "reader", "secret" }, "refuses the user"},
		"privilege":  {func(c *mysql.Config) { c.User, c.Passwd = "reader", "pw" }, "lacks a privilege"},
		"database":   {func(c *mysql.Config) { c.DBName = "nowhere" }, "no such database"},
		"no table":   {func(c *mysql.Config) { c.DBName = "mysql" }, "no table leaf_ticket"},
		"statements": {func(c *mysql.Config) { c.MultiStatements = false }, "multiStatements"},
		"charset":    {func(c *mysql.Config) { _ = c.Apply(mysql.Charset("latin1", "")) }, "charset=utf8mb4"},
		"tls":        {func(c *mysql.Config) { c.TLSConfig = "true" }, "tls"},
	}
	for name, tt := range tests {
		cfg := config(t, s.hosts[0], database)
		tt.change(cfg)
		store := open(t, []ticket.Server{{Name: "h1:3306/db", DB: pool(t, cfg)}}, ticket.Layout{}, nil)
		_, err := store.Advance(t.Context(), "order", 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "h1:3306/db") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want one that says %q", name, err, tt.want)
		}
		for _, err := range store.Tags(t.Context()) {
			if name != "privilege" && err == nil {
				t.Errorf("%s: it was listed", name)
			}
		}
	}
}

func TestReadOnlyServer(t *testing.T) {
	own := ownServer(t)
	s := newSet(t, own)
	initSet(t, s.servers(t), ticket.Layout{Stride: 10}, order)
	cfg := config(t, own, s.databases[0])
	own.Exec(t, "", "CREATE OR REPLACE USER app@'127.0.0.1'", "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON *.* TO app@'127.0.0.1'")
	cfg.User = "app"
	servers := []ticket.Server{{Name: "h1", DB: pool(t, cfg)}}
	store := open(t, servers, ticket.Layout{Stride: 10}, patient)
	var got drivertest.Ranges
	draw(t.Context(), t, store, 1, &got)
	own.Exec(t, "", "SET GLOBAL read_only = 1")
	if _, err := store.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("advance: %v", err)
	}
	if err := store.Create(t.Context(), segment.Tag{Name: "x", Step: 1}); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("create: %v", err)
	}
	own.Exec(t, "", "SET GLOBAL read_only = 0")
	draw(t.Context(), t, store, 1, &got)
}

// An open transaction would take the draw with it when it is undone.
func TestTransactionLeftOpen(t *testing.T) {
	for _, layout := range []ticket.Layout{{}, {Stride: 10}} {
		s := newSet(t, shared[0])
		initSet(t, s.servers(t), layout, order)
		servers := s.servers(t)
		servers[0].DB.SetMaxOpenConns(1)
		store := open(t, servers, layout, patient)
		var got drivertest.Ranges
		draw(t.Context(), t, store, 1, &got)
		if _, err := servers[0].DB.Exec("START TRANSACTION"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "left open") {
			t.Errorf("%v: %v", layout, err)
		}
		drawFrom(t, store, &got, "1")
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}

// The suite's rules for a Catalog, as far as single tickets need others.
func TestCatalogOfTickets(t *testing.T) {
	for _, layout := range []ticket.Layout{{}, {TablePerTag: true}} {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout)
		store := open(t, s.servers(t), layout, patient)
		ctx := t.Context()
		tag := segment.Tag{Name: "order", MaxID: 1000, Step: 5, Options: segment.Describe("订单")}
		if err := errors.Join(store.Create(ctx, tag), store.Create(ctx, segment.Tag{Name: "a", MaxID: 1, Step: 1})); err != nil {
			t.Fatal(err)
		}
		if err := store.Create(ctx, tag); !errors.Is(err, leaf.ErrTagExists) {
			t.Errorf("%v: create again: %v", layout, err)
		}
		var got drivertest.Ranges
		if g := draw(ctx, t, store, 1, &got); g.Range.Start < 1000 {
			t.Errorf("%v: %+v", layout, g)
		}
		if _, err := store.Alter(ctx, "order", segment.Change{MaxID: new(int64(1000))}); !errors.Is(err, leaf.ErrRegression) {
			t.Errorf("%v: lowered: %v", layout, err)
		}
		if _, err := store.Alter(ctx, "order", segment.Change{MaxID: new(int64(1000)), Force: true}); !errors.Is(err, leaf.ErrUnsupported) {
			t.Errorf("%v: lowered by force: %v", layout, err)
		}
		changed, err := store.Alter(ctx, "order", segment.Change{MaxID: new(int64(5000)), Step: new(int64(6))})
		if changed.Updated = (time.Time{}); err != nil || !changed.Same(segment.Tag{Name: "order", MaxID: 5000, Step: 6, Options: segment.Describe("订单")}) {
			t.Errorf("%v: altered: %+v, %v", layout, changed, err)
		}
		for range 4 {
			if g := draw(ctx, t, store, 1, &got); g.Range.Start < 5000 || g.Step != 6 {
				t.Errorf("%v: after a raise %+v", layout, g)
			}
		}
		g, err := store.Advance(ctx, "a", 1)
		if other := g.Range.Start < 5000; err != nil || other != layout.TablePerTag {
			t.Errorf("%v: the other tag: %+v, %v", layout, g, err)
		}
		if err := store.Delete(ctx, "order"); err != nil {
			t.Error(err)
		}
		_, altered := store.Alter(ctx, "order", changeOf(1))
		_, drawn := store.Advance(ctx, "order", 1)
		for _, err := range []error{altered, drawn, store.Delete(ctx, "order")} {
			if !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("%v: after delete: %v", layout, err)
			}
		}
	}
}

// A tag that a Create or a Delete left on one of the servers is drawn there, and
// completed by the next Create.
func TestTagOnOneServerOnly(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout, order)
		store := open(t, s.servers(t), layout, patient)
		var got drivertest.Ranges
		drawFrom(t, store, &got, "1", "2")
		s.exec(t, 1, "DELETE FROM leaf_ticket_tag")
		for range 4 {
			if g := draw(t.Context(), t, store, 1, &got); g.Source != "2" {
				t.Errorf("%v: %+v", layout, g)
			}
		}
		if err := store.Create(t.Context(), order); err != nil {
			t.Errorf("%v: complete it: %v", layout, err)
		}
		drawFrom(t, store, &got, "1", "2")
		if err := got.Check(); err != nil {
			t.Error(err)
		}
		if err := store.Create(t.Context(), order); !errors.Is(err, leaf.ErrTagExists) {
			t.Errorf("%v: create again: %v", layout, err)
		}
		if err := initTickets(t.Context(), s.servers(t), layout, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v: init: %v", layout, err)
		}
	}
}

// A server that lost a tag, or its table, does not start it again because somebody
// changes something else, or wants to know where it stands.
func TestAlterOfALostTag(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout, order)
		store := open(t, s.servers(t), layout, patient)
		var got drivertest.Ranges
		for range 8 {
			draw(t.Context(), t, store, 6, &got)
		}
		if layout.TablePerTag {
			s.exec(t, 2, "DROP TABLE "+layout.Table("order"))
		} else {
			s.exec(t, 2, "DELETE FROM leaf_ticket_tag")
		}
		for _, change := range []segment.Change{changeOf(20), {}} {
			_, err := store.Alter(t.Context(), "order", change)
			if !errors.Is(err, segment.ErrDamaged) || !strings.Contains(err.Error(), "server2/") {
				t.Errorf("%v: altered: %v", layout, err)
			}
		}
		for range 4 {
			if g := draw(t.Context(), t, store, 1, &got); g.Source != "1" || g.Step != order.Step {
				t.Errorf("%v: after a change that was refused: %+v", layout, g)
			}
		}
		if _, err := store.Alter(t.Context(), "order", segment.Change{MaxID: new(int64(1000))}); err != nil {
			t.Errorf("%v: raised: %v", layout, err)
		}
		drawFrom(t, store, &got, "1", "2")
		if err := got.Check(); err != nil {
			t.Errorf("%v: %v", layout, err)
		}
	}
}

// Who may only read can ask all servers for a tag with a change of nothing.
func TestAlterNothing(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout, segment.Tag{Name: "order", MaxID: 71, Step: 9})
		var servers []ticket.Server
		for i, database := range s.databases {
			cfg := config(t, s.hosts[i], database)
			cfg.User, cfg.Passwd = database, "pw"
			s.exec(t, i+1, "CREATE USER "+database+"@'127.0.0.1' IDENTIFIED BY 'pw'", "GRANT SELECT ON "+database+".* TO "+database+"@'127.0.0.1'")
			servers = append(servers, ticket.Server{Name: database + cfg.Addr, DB: pool(t, cfg)})
		}
		if tag, err := open(t, servers, layout, patient).Alter(t.Context(), "order", segment.Change{}); err != nil || tag.Step != 9 {
			t.Errorf("%v: %+v, %v", layout, tag, err)
		}
	}
}

// The deletion of an unknown tag changes nothing: a user may lack the right to create its table.
func TestDeleteUnknown(t *testing.T) {
	s := newSet(t, shared[:]...)
	servers := s.servers(t)
	initSet(t, servers, ticket.Layout{}, order)
	if err := open(t, servers, ticket.Layout{}, nil).Delete(t.Context(), "nope"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Error(err)
	}
	for _, server := range servers {
		var name string
		if err := server.DB.QueryRow("SHOW TABLES LIKE 'leaf_ticket_deleted'").Scan(&name); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("%q, %v", name, err)
		}
	}
}
