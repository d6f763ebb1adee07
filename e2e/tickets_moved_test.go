package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A ticketPair is two ticket servers as Flickr had them: each a database of its own, with odd and
// even numbers.
type ticketPair struct {
	databases [2]string
	db        [2]*sql.DB
	turn      atomic.Int64
}

const ticketTable = `CREATE TABLE Tickets64 (id bigint(20) unsigned NOT NULL auto_increment, stub char(1) NOT NULL default '',
	PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB`

func newTicketPair(t *testing.T) *ticketPair {
	p := new(ticketPair)
	for i := range p.db {
		p.databases[i] = mariadb.NewDatabase(t)
		mariadb.Exec(t, p.databases[i], ticketTable)
		p.db[i] = openDSN(t, mariadb.DSN(p.databases[i])+fmt.Sprintf("&auto_increment_increment=2&auto_increment_offset=%d", i+1))
	}
	return p
}

// next takes a ticket of the servers in turn. Calls for one row deadlock now and then, and are repeated.
func (p *ticketPair) next(ctx context.Context) (int64, error) {
	const deadlock = 1213
	for {
		result, err := p.db[p.turn.Add(1)%2].ExecContext(ctx, `REPLACE INTO Tickets64 (stub) VALUES ('a')`)
		if err == nil {
			return result.LastInsertId()
		}
		if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != deadlock {
			return 0, err
		}
	}
}

// The recipe of docs/migrating-from-ticket-servers.md.
func TestFromTicketServers(t *testing.T) {
	testserver.Long(t)
	recipe := readPage(t, "migrating-from-ticket-servers.md")
	old, ours := newTicketPair(t), mariadb.NewDatabase(t)
	m := startMovers(t, 4, func(int) taker { return paced(old.next) })

	var from []string
	for _, database := range old.databases {
		recipe.run(t, database, "The bound", "1000000", "500000")
		recipe.run(t, database, "The trigger")
		from = append(from, "--from", mariadb.URL(database))
	}
	leafCommand(t, "init", "--store", mariadb.URL(ours))
	imports(t, append(from, "--store", mariadb.URL(ours), "--margin", "500000", "--dry-run")...)
	imports(t, append(from, "--store", mariadb.URL(ours), "--margin", "500000")...)
	s := serve(t, "--store", mariadb.URL(ours))
	s.next("Tickets64")

	m.move(s.taking("Tickets64", 10))
	for i, database := range old.databases {
		recipe.run(t, database, "The end of the old counter")
		if _, err := old.db[i].ExecContext(t.Context(), `REPLACE INTO Tickets64 (stub) VALUES ('a')`); err == nil {
			t.Error("a ticket server still deals tickets")
		}
	}
	m.run()

	back := counterOf(t, ours, "Tickets64") + 100_000_000
	for _, database := range old.databases {
		recipe.run(t, database, "The way back", "5000000000", fmt.Sprint(back))
	}
	m.move(func(int) taker { return paced(old.next) })
	m.finish()
	if got := counterOf(t, ours, "Tickets64"); got > back {
		t.Errorf("our counter is at %d, beyond %d, where the old ones went on from", got, back)
	}
}

// The recipe of docs/migrating-from-auto-increment.md: the old application inserts without IDs, the
// new one with ours, and both run.
func TestFromAutoIncrement(t *testing.T) {
	testserver.Long(t)
	recipe := readPage(t, "migrating-from-auto-increment.md")
	shop, ours := mariadb.NewDatabase(t), mariadb.NewDatabase(t)
	mariadb.Exec(t, shop, `CREATE TABLE orders (id INT NOT NULL AUTO_INCREMENT, what varchar(20), PRIMARY KEY (id)) ENGINE=InnoDB`)
	db := openDB(t, shop)
	inserted := func(ctx context.Context) (int64, error) {
		result, err := db.ExecContext(ctx, `INSERT INTO orders (what) VALUES ('x')`)
		if err != nil {
			return 0, err
		}
		return result.LastInsertId()
	}
	m := startMovers(t, 4, func(int) taker { return paced(inserted) })

	recipe.run(t, shop, "Room for the IDs")
	leafCommand(t, "init", "--store", mariadb.URL(ours))
	takeOver := []string{"--from", mariadb.URL(shop), "--table", "orders", "--store", mariadb.URL(ours), "--margin", "1000000"}
	imports(t, append(takeOver, "--dry-run")...)
	imports(t, takeOver...)
	start := counterOf(t, ours, "orders")
	recipe.run(t, shop, "Two ranges")
	if got := queryInt(t, shop, "SELECT MAX(id) FROM orders WHERE id < 10000000000"); got >= start {
		t.Fatalf("the table had passed %d, where the tag starts: %d", start, got)
	}
	s := serve(t, "--store", mariadb.URL(ours))
	s.next("orders")

	// A program that has moved inserts our IDs.
	given := func(int) taker {
		return func(ctx context.Context) ([]int64, error) {
			ids, err := s.ids("orders", 10)
			for _, id := range ids {
				if err == nil {
					_, err = db.ExecContext(ctx, `INSERT INTO orders (id, what) VALUES (?, 'y')`, id)
				}
			}
			return ids, err
		}
	}
	m.move(given)
	imports(t, takeOver...)
	if got := counterOf(t, ours, "orders"); got < 10_000_000_000 {
		t.Errorf("after the second import the tag is at %d", got)
	}
	recipe.run(t, shop, "No more AUTO_INCREMENT")
	if _, err := inserted(t.Context()); err == nil {
		t.Error("a row without an ID is inserted")
	}
	m.run()
	recipe.run(t, shop, "The way back", "30000000000", fmt.Sprint(counterOf(t, ours, "orders")+1_000_000_000))
	m.move(func(int) taker { return paced(inserted) })
	m.finish()
}
