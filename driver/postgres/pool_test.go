package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A store may use the application's own pool: an open transaction on one of its connections does
// not include an Advance.
func TestPostgresPoolOfTheApplication(t *testing.T) {
	url := postgresServer.URL(initPostgres(t, segment.Tag{Name: "order", MaxID: 1, Step: 10}))
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	s := openPostgres(t, db)
	for start := int64(1); start < 31; start += 10 {
		g, err := s.Advance(t.Context(), "order", 10)
		if want := (leaf.Range{Start: start, End: start + 10}); err != nil || g.Range != want {
			t.Errorf("got %v, %v, want %v", g.Range, err, want)
		}
		if _, err := pool.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
	}
	g, err := openPostgres(t, postgresDB(t, url)).Advance(t.Context(), "order", 10)
	if want := (leaf.Range{Start: 31, End: 41}); err != nil || g.Range != want {
		t.Errorf("another pool: %v, %v, want %v", g.Range, err, want)
	}
}
