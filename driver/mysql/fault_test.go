package mysql_test

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A server that is killed under load loses no range that it acknowledged.
func TestMySQLKilledServer(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	database := server.NewDatabase(t)
	server.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 10), ('b', 1, 10)")
	s := openMySQL(t, mysqlDB(t, mysqlConfig(t, server, database)))
	ranges := map[string]*drivertest.Ranges{"a": {}, "b": {}}
	ctx, stop := context.WithCancel(t.Context())
	var served atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		tag := []string{"a", "b"}[i%2]
		wg.Go(func() { load(ctx, s, tag, ranges[tag], &served) })
	}
	for range 3 {
		await(t, &served, served.Load()+300)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	await(t, &served, served.Load()+300)
	stop()
	wg.Wait()
	for tag, r := range ranges {
		if err := r.Check(); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

// load advances tag until ctx ends, also by its own step, whatever fails.
func load(ctx context.Context, s segment.Store, tag string, ranges *drivertest.Ranges, served *atomic.Int64) {
	for i := int64(0); ctx.Err() == nil; i++ {
		g, err := s.Advance(ctx, tag, i%3)
		if err == nil {
			ranges.Add(g.Range)
			served.Add(1)
		}
	}
}

func await(t *testing.T, served *atomic.Int64, want int64) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for served.Load() < want {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls served, want %d: the store does not recover", served.Load(), want)
		}
		time.Sleep(time.Millisecond) // polls a counter; the event has no channel
	}
}

// Java Leaf's own transactions on the same row, beside ours.
func TestMySQLBesideJava(t *testing.T) {
	s, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('leaf-segment-test', 1, 20, 'Test leaf Segment Mode Get Id')")
	java := mysqlDB(t, mysqlConfig(t, mariadb, database))
	const tag, calls = "leaf-segment-test", 150
	var ranges drivertest.Ranges
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for j := range calls {
				r, err := javaAllocation(t.Context(), java, tag, int64((i+j)%2)*40)
				if err != nil {
					t.Error(err)
					return
				}
				ranges.Add(r)
			}
		})
		wg.Go(func() {
			for j := range calls {
				g, err := s.Advance(t.Context(), tag, int64(j%3)*7)
				if err != nil {
					t.Error(err)
					return
				}
				ranges.Add(g.Range)
			}
		})
	}
	wg.Wait()
	if err := ranges.CheckExactly(leaf.Range{Start: 1, End: 1 + ranges.Count()}); err != nil {
		t.Error(err)
	}
}

// javaAllocation does as Java Leaf does: one transaction, by the row's own step if
// step is 0, and the range is counted back from max_id.
func javaAllocation(ctx context.Context, db *sql.DB, tag string, step int64) (leaf.Range, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return leaf.Range{}, err
	}
	defer tx.Rollback()
	if step == 0 {
		_, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", tag)
	} else {
		_, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", step, tag)
	}
	if err != nil {
		return leaf.Range{}, err
	}
	var name string
	var maxID, own int64
	if err := tx.QueryRowContext(ctx, "SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?", tag).Scan(&name, &maxID, &own); err != nil {
		return leaf.Range{}, err
	}
	if step == 0 {
		step = own
	}
	return leaf.Range{Start: maxID - step, End: maxID}, tx.Commit()
}
