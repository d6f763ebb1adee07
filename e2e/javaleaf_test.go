package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

func openDB(t testing.TB, database string) *sql.DB {
	t.Helper()
	return openDSN(t, mariadb.DSN(database))
}

func openDSN(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func queryInt(t testing.TB, database, query string) (n int64) {
	t.Helper()
	if err := openDB(t, database).QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// javaLeaf allocates the way a Java Leaf server does: its statements, in its
// transaction, with its rule for the step.
type javaLeaf struct {
	db    *sql.DB
	tag   string
	loads int
	step  int64
	at    time.Time
}

// load returns [max_id - step, max_id) of the row after the update.
func (j *javaLeaf) load(ctx context.Context) (first, end int64, err error) {
	update, args := "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", []any{j.tag}
	next := int64(0)
	if j.loads >= 2 {
		next = j.nextStep()
		update, args = "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", []any{next, j.tag}
	}
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, update, args...); err != nil {
		return 0, 0, err
	}
	var tagStep int64
	query := "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?"
	if err := tx.QueryRowContext(ctx, query, j.tag).Scan(&end, &tagStep); err != nil {
		return 0, 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, 0, err
	}
	j.loads++
	j.step = max(next, tagStep)
	j.at = time.Now()
	return end - j.step, end, nil
}

func (j *javaLeaf) nextStep() int64 {
	if time.Since(j.at) < 15*time.Minute && j.step*2 <= 1_000_000 {
		return j.step * 2
	}
	return j.step
}

// The sample row of Java Leaf: the first ID is 1, and with Java's policy max_id
// evolves as under a Java server while step is left alone.
func TestJavaLeafRow(t *testing.T) {
	t.Parallel()
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable...)
	s := serveWith(t, "LEAF_SEGMENT_POLICY=leaf", "--store", mariadb.URL(database))
	var want int64
	take := func(n int) {
		t.Helper()
		var ids []int64
		until(t, 20*time.Second, "answered", func() (err error) {
			ids, err = s.ids(sampleTag, n)
			return err
		})
		for _, id := range ids {
			if want++; id != want {
				t.Fatalf("got %d, want %d", id, want)
			}
		}
	}
	wantMax := func(maxID int64) {
		t.Helper()
		until(t, 5*time.Second, "allocated", func() error {
			if got := column(t, database, "max_id"); got != maxID {
				return fmt.Errorf("max_id is %d, want %d", got, maxID)
			}
			return nil
		})
	}
	take(1)
	wantMax(2001) // the first load: the row's own step
	take(201)     // more than 10 % used: the first prefetch, again the row's own step
	wantMax(4001)
	take(2000) // 202 of the second segment, younger than 15 minutes: twice the step
	wantMax(8001)
	take(2600) // more than 10 % of 4000
	wantMax(16001)
	if step := column(t, database, "step"); step != 2000 {
		t.Errorf("step was changed to %d", step)
	}
	s.stop()
	if maxID := column(t, database, "max_id"); maxID != want+1 {
		t.Errorf("after a clean stop max_id is %d, want %d\n%s", maxID, want+1, s.output())
	}
}

// Three of our servers and a writer that behaves like a Java Leaf share one row.
func TestBesideJavaLeaf(t *testing.T) {
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable...)
	var servers []*server
	for range 3 {
		servers = append(servers, serveWith(t, "LEAF_SEGMENT_MAX_STOCK=20000", "--store", mariadb.URL(database)))
	}
	first := firstIDs(servers...)
	l := startLoad(t, 12, 100, sampleTag, func(c int) *server { return servers[c%3] })
	l.seen.Shard().Add(first...)
	ctx, cancel := context.WithCancel(t.Context())
	shard := l.seen.Shard()
	l.wg.Go(func() { runJava(ctx, t, database, l, shard) })
	l.await(t, figure[int64](300_000, 5_500_000))
	cancel()
	l.stop()
	l.check(t)
	if n := l.errors.Load(); n != 0 {
		t.Errorf("%d failed calls", n)
	}
	for _, s := range servers {
		s.stop()
	}
}

// runJava allocates and issues until ctx ends.
func runJava(ctx context.Context, t *testing.T, database string, l *load, shard *drivertest.IDShard) {
	java := &javaLeaf{db: openDB(t, database), tag: sampleTag}
	for ctx.Err() == nil {
		java.step = min(java.step, 4000) // else its loads would be most of the IDs
		first, end, err := java.load(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		for id := first; id < end; id++ {
			shard.Add(id)
		}
		l.count.Add(end - first)
		time.Sleep(50 * time.Millisecond)
	}
}

// The rule that the writer above follows is the one that the segment package has.
func TestJavaStepRule(t *testing.T) {
	t.Parallel()
	j := &javaLeaf{step: 2000, at: time.Now()}
	if got, want := j.nextStep(), segment.LeafStep(2000, 2000, 0); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}
