package mysql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/segment"
)

// BenchmarkAdvance measures durable allocations, next to Java Leaf's statements.
func BenchmarkAdvance(b *testing.B) {
	_, database := newMySQL(b, javaTable)
	db := mysqlDB(b, mysqlConfig(b, mariadb, database))
	s := openMySQL(b, db)
	for _, tag := range sqltest.BenchTags() {
		if err := s.Create(b.Context(), tag); err != nil {
			b.Fatal(err)
		}
	}
	for name, measured := range map[string]sqltest.Advancer{"leaf": s, "java": javaTransaction{db}} {
		b.Run(name, func(b *testing.B) { sqltest.Benchmark(b, measured) })
	}
}

type javaTransaction struct{ db *sql.DB }

func (j javaTransaction) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	r, err := javaAllocation(ctx, j.db, tag, n)
	return segment.Grant{Range: r}, err
}
