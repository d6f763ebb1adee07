package mysql_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
)

// Java Leaf's own transactions run on the same row as ours.
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
