package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
)

// BenchmarkAdvance measures durable allocations, each caller with a tag of its own,
// beside what Java Leaf sends.
func BenchmarkAdvance(b *testing.B) {
	stores := []struct {
		name string
		open func(b *testing.B) advancer
	}{
		{"mariadb", func(b *testing.B) advancer { s, _ := newBenchMySQL(b); return s }},
		{"java", func(b *testing.B) advancer {
			_, database := newBenchMySQL(b)
			return javaTransaction{mysqlDB(b, mysqlConfig(b, mariadb, database))}
		}},
	}
	for _, store := range stores {
		for _, callers := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/callers=%d", store.name, callers), func(b *testing.B) {
				benchmarkAdvance(b, store.open(b), callers)
			})
		}
	}
}

type advancer interface {
	Advance(ctx context.Context, tag string, n int64) (segment.Grant, error)
}

const benchCallers = 32

func benchTags() []segment.Tag {
	var tags []segment.Tag
	for i := range benchCallers {
		tags = append(tags, segment.Tag{Name: fmt.Sprint("tag-", i), Step: 1000})
	}
	return tags
}

func benchmarkAdvance(b *testing.B, s advancer, callers int) {
	ctx := context.Background()
	if _, err := s.Advance(ctx, "tag-0", 1); err != nil {
		b.Fatal(err)
	}
	if callers == 1 {
		for b.Loop() {
			if _, err := s.Advance(ctx, "tag-0", 1000); err != nil {
				b.Fatal(err)
			}
		}
	} else {
		var next atomic.Int64
		done := make(chan error, callers)
		b.ResetTimer()
		for i := range callers {
			go func() {
				for next.Add(1) <= int64(b.N) {
					if _, err := s.Advance(ctx, fmt.Sprint("tag-", i), 1000); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range callers {
			if err := <-done; err != nil {
				b.Error(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func newBenchMySQL(b *testing.B) (store *mysql.Store, database string) {
	b.Helper()
	store, database = newMySQL(b, javaTable)
	for _, tag := range benchTags() {
		if err := store.Create(b.Context(), tag); err != nil {
			b.Fatal(err)
		}
	}
	return store, database
}

// javaTransaction is BEGIN, UPDATE, SELECT, COMMIT.
type javaTransaction struct{ db *sql.DB }

func (j javaTransaction) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var g segment.Grant
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return g, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?`, n, tag); err != nil {
		return g, err
	}
	query := `SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?`
	if err := tx.QueryRowContext(ctx, query, tag).Scan(&g.Range.End, &g.Step); err != nil {
		return g, err
	}
	g.Range.Start = g.Range.End - n
	return g, tx.Commit()
}
