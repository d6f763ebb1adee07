package sqlite_test

import (
	"context"
	"database/sql"
	"net/url"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/segment"
)

// BenchmarkAdvance measures durable allocations, next to one transaction for each call.
func BenchmarkAdvance(b *testing.B) {
	path := newSQLite(b, sqltest.BenchTags()...)
	for name, measured := range map[string]sqltest.Advancer{"leaf": openSQLite(b, path), "plain": newPlain(b, path)} {
		b.Run(name, func(b *testing.B) { sqltest.Benchmark(b, measured) })
	}
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
