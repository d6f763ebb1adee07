package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// movers are clients that take IDs without a pause while a migration moves them, one after the
// other, from one system to another.
type movers struct {
	load
	t    *testing.T
	from []atomic.Pointer[taker] // which each client uses
	took []atomic.Int64          // how many IDs each client has had
}

// A taker takes IDs of a system.
type taker func(ctx context.Context) ([]int64, error)

// startMovers starts clients that take IDs of a system.
func startMovers(t *testing.T, clients int, system func(client int) taker) *movers {
	m := &movers{t: t, from: make([]atomic.Pointer[taker], clients), took: make([]atomic.Int64, clients)}
	for c := range clients {
		m.from[c].Store(new(system(c)))
	}
	ctx := m.begin(t)
	for c := range clients {
		shard := m.seen.Shard()
		m.wg.Go(func() {
			for ctx.Err() == nil {
				ids, err := (*m.from[c].Load())(context.WithoutCancel(ctx))
				if err != nil {
					m.fail(err)
					time.Sleep(time.Millisecond)
					continue
				}
				shard.Add(ids...)
				m.took[c].Add(int64(len(ids)))
				m.count.Add(int64(len(ids)))
			}
		})
	}
	m.run()
	return m
}

// run returns when each client has had some more IDs.
func (m *movers) run() {
	m.t.Helper()
	for c := range m.took {
		m.runOne(c)
	}
}

// runOne waits for the call under way, which may be of the former system, and for others after it.
func (m *movers) runOne(c int) {
	m.t.Helper()
	m.take(c, figure[int64](200, 2_000))
}

// take waits until a client has had n IDs more.
func (m *movers) take(c int, n int64) {
	m.t.Helper()
	want := m.took[c].Load() + n
	until(m.t, time.Minute, "taking IDs", func() error {
		if got := m.took[c].Load(); got < want {
			return fmt.Errorf("client %d has had %d IDs, want %d (first error: %v)", c, got, want, m.firstError())
		}
		return nil
	})
}

// move moves the clients, one after the other.
func (m *movers) move(system func(client int) taker) {
	m.t.Helper()
	for c := range m.from {
		m.from[c].Store(new(system(c)))
		m.runOne(c)
	}
	m.run()
}

// finish stops the clients: no call failed, and no ID came twice.
func (m *movers) finish() {
	m.t.Helper()
	m.stop()
	m.check(m.t)
	if n := m.errors.Load(); n != 0 {
		m.t.Errorf("%d failed calls (first: %v)", n, m.firstError())
	}
}

// paced takes a few IDs in a millisecond, from memory, so that no margin is used up.
func paced(next func(context.Context) (int64, error)) taker {
	return func(ctx context.Context) (ids []int64, err error) {
		time.Sleep(time.Millisecond)
		for range 10 {
			id, err := next(ctx)
			if err != nil {
				return ids, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
}

// taking takes IDs of a tag from a server of ours.
func (s *server) taking(tag string, n int) func(int) taker {
	return func(int) taker { return func(context.Context) ([]int64, error) { return s.ids(tag, n) } }
}

// A page is the recipe of a migration: its blocks marked sql, by their first line, which is a comment.
type page map[string]string

func readPage(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	p := make(page)
	for block := range strings.SplitSeq(string(text), "```sql\n") {
		body, _, ok := strings.Cut(block, "```")
		title, statements, _ := strings.Cut(body, "\n")
		if ok && strings.HasPrefix(title, "-- ") {
			p[strings.TrimPrefix(title, "-- ")] = statements
		}
	}
	return p
}

// statements returns those of a block, with other words in them.
func (p page) statements(t *testing.T, title string, other ...string) (all []string) {
	t.Helper()
	text, ok := p[title]
	if !ok {
		t.Fatalf("the page has no block %q", title)
	}
	text = strings.NewReplacer(other...).Replace(text)
	end := ";\n"
	if rest, ok := strings.CutPrefix(text, "DELIMITER //\n"); ok {
		text, _, _ = strings.Cut(rest, "DELIMITER ;")
		end = "//\n"
	}
	for statement := range strings.SplitSeq(text, end) {
		if strings.TrimSpace(statement) != "" {
			all = append(all, statement)
		}
	}
	return all
}

// run runs a block as the command mysql does.
func (p page) run(t *testing.T, database, title string, other ...string) {
	t.Helper()
	mariadb.Exec(t, database, p.statements(t, title, other...)...)
}

// query returns the lines of a block whose last statement is a query.
func (p page) query(t *testing.T, database, title string) (lines string) {
	t.Helper()
	conn, err := openDB(t, database).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range p.statements(t, title) {
		rows, err := conn.QueryContext(t.Context(), statement)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			lines += line + "\n"
		}
		if err := cmp.Or(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// imports runs leaf import.
func imports(t *testing.T, args ...string) string {
	t.Helper()
	out := leafCommand(t, append([]string{"import"}, args...)...)
	t.Log(out)
	return out
}

// counterOf returns the counter of a tag of ours in MySQL.
func counterOf(t *testing.T, database, tag string) int64 {
	t.Helper()
	return queryInt(t, database, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'")
}
