package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A cosID is a process with CosId's segments: it adds its step to a counter, and owns the numbers
// from the old value, without it, to the new one.
type cosID struct {
	add  func(ctx context.Context, step int64) (newMax int64, err error)
	step int64

	mu         sync.Mutex
	next, last int64
}

func (c *cosID) nextID(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= c.last {
		newMax, err := c.add(ctx, c.step)
		if err != nil {
			return 0, err
		}
		c.next, c.last = newMax-c.step, newMax
	}
	c.next++
	return c.next, nil
}

// addInSQL has the statements of CosId's JDBC distributor, in its one transaction.
func addInSQL(db *sql.DB) func(context.Context, int64) (int64, error) {
	return func(ctx context.Context, step int64) (newMax int64, err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(ctx, `update cosid set last_max_id=(last_max_id + ?),last_fetch_time=unix_timestamp() where name = ?`, step, "shop.order")
		if err == nil {
			err = tx.QueryRowContext(ctx, `select last_max_id from cosid where name = ?`, "shop.order").Scan(&newMax)
		}
		if err != nil {
			return 0, err
		}
		return newMax, tx.Commit()
	}
}

const cosIDKey = "cosid:{shop.order}.adder"

func addInRedis(r *testserver.RedisServer) func(context.Context, int64) (int64, error) {
	return func(_ context.Context, step int64) (int64, error) {
		text, err := r.Do("INCRBY", cosIDKey, fmt.Sprint(step))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(text, 10, 64)
	}
}

// startCosIDs starts processes with steps of their own.
func startCosIDs(t *testing.T, add func(context.Context, int64) (int64, error)) (*movers, func(int) taker) {
	processes := make([]*cosID, 4)
	for i := range processes {
		processes[i] = &cosID{add: add, step: int64(10 * (i + 1))}
	}
	system := func(c int) taker { return paced(processes[c].nextID) }
	return startMovers(t, len(processes), system), system
}

// The recipe of docs/migrating-from-cosid.md for segments in JDBC.
func TestFromCosIDInJDBC(t *testing.T) {
	recipe := readPage(t, "migrating-from-cosid.md")
	old, ours := mariadb.NewDatabase(t), mariadb.NewDatabase(t)
	mariadb.Exec(t, old, `create table cosid (name varchar(100) not null comment '{namespace}.{name}', last_max_id bigint unsigned not null default 0,
		last_fetch_time bigint unsigned not null, constraint cosid_pk primary key (name)) engine = InnoDB`,
		`insert into cosid (name, last_max_id, last_fetch_time) value ('shop.order', 0, unix_timestamp())`)
	add := addInSQL(openDB(t, old))
	m, before := startCosIDs(t, add)

	recipe.run(t, old, "The bound", "1000000", "500000")
	recipe.run(t, old, "The trigger")
	mariadb.Exec(t, old, `insert into cosid (name, last_max_id, last_fetch_time) value ('shop.later', 0, unix_timestamp())`)
	if _, err := openDB(t, old).Exec("update cosid set last_max_id = last_max_id + 10 where name = 'shop.later'"); err == nil {
		t.Error("a counter without a bound moves")
	}
	leafCommand(t, "init", "--store", mariadb.URL(ours))
	imports(t, "--from", mariadb.URL(old), "--store", mariadb.URL(ours), "--margin", "500000")
	s := serve(t, "--store", mariadb.URL(ours))
	s.next("shop.order")
	m.move(s.taking("shop.order", 10))
	recipe.run(t, old, "The end of the old counter")
	if _, err := add(t.Context(), 1); err == nil {
		t.Error("the old counter still moves")
	}
	m.run()

	back := counterOf(t, ours, "shop.order") + 100_000_000
	recipe.run(t, old, "The way back", "5000000000", fmt.Sprint(back))
	m.move(before)
	m.finish()
	if got := counterOf(t, ours, "shop.order"); got > back {
		t.Errorf("our counter is at %d, beyond %d, where the old one went on from", got, back)
	}
}

// The same for segments in Redis.
func TestFromCosIDInRedis(t *testing.T) {
	r := testserver.Redis(t, nil)
	do := func(args ...string) string {
		t.Helper()
		text, err := r.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	do("SETNX", cosIDKey, "0")
	m, before := startCosIDs(t, addInRedis(r))

	ours := mariadb.NewDatabase(t)
	leafCommand(t, "init", "--store", mariadb.URL(ours))
	imports(t, "--from", r.URL(), "--store", mariadb.URL(ours), "--margin", "1000000000")
	start := counterOf(t, ours, "shop.order")
	s := serve(t, "--store", mariadb.URL(ours))
	s.next("shop.order")
	m.move(s.taking("shop.order", 10))

	last, err := strconv.ParseInt(do("SET", cosIDKey, "moved", "GET"), 10, 64)
	if err != nil || last >= start {
		t.Errorf("the old counter ended at %d (%v), our tag starts at %d", last, err, start)
	}
	if _, err := r.Do("INCRBY", cosIDKey, "1"); err == nil {
		t.Error("the old counter still moves")
	}
	if text := do("SETNX", cosIDKey, "0"); text != "0" {
		t.Error("a restarted process creates the key again")
	}
	m.run()
	do("SET", cosIDKey, fmt.Sprint(counterOf(t, ours, "shop.order")+1_000_000_000))
	m.move(before)
	m.finish()
}

// next10 takes ten IDs by a route of ours, one a line.
func (s *server) next10(path string) func(int) taker {
	return func(int) taker {
		return func(context.Context) (ids []int64, err error) {
			body, err := get(s.url + path + "?n=10")
			for line := range strings.Lines(body) {
				id, parseErr := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
				err = errors.Join(err, parseErr)
				ids = append(ids, id)
			}
			return ids, err
		}
	}
}
