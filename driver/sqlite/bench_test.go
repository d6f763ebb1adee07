package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

// BenchmarkAdvance measures durable allocations, each caller with a tag of its own,
// beside a transaction for each call.
func BenchmarkAdvance(b *testing.B) {
	stores := []struct {
		name string
		open func(b *testing.B) advancer
	}{
		{"sqlite", func(b *testing.B) advancer { return openSQLite(b, newSQLite(b, benchTags()...)) }},
		{"plain", func(b *testing.B) advancer { return newPlain(b, newSQLite(b, benchTags()...)) }},
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

// plain has each call be a transaction on a connection of the pool.
type plain struct{ stmt *sql.Stmt }

func newPlain(b *testing.B, path string) plain {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+
		"?_pragma=busy_timeout(60000)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	stmt, err := db.Prepare(`UPDATE leaf_alloc SET max_id = max_id + ?1 WHERE biz_tag = ?2 RETURNING max_id, step`)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stmt.Close(); db.Close() })
	return plain{stmt}
}

func (p plain) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var g segment.Grant
	err := p.stmt.QueryRowContext(ctx, n, tag).Scan(&g.Range.End, &g.Step)
	g.Range.Start = g.Range.End - n
	return g, err
}
