package postgres_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// An initOf creates one of the tables.
type initOf func(ctx context.Context, db *sql.DB) error

func initTags(do func(context.Context, *sql.DB, []segment.Tag) error) initOf {
	return func(ctx context.Context, db *sql.DB) error { return do(ctx, db, []segment.Tag{order}) }
}

// testInits has each table created several times at once, in a state of its own; each
// caller has a pool of its own, as processes have.
func testInits(t *testing.T, inits map[string]initOf, newState func(t testing.TB) (open func(testing.TB) *sql.DB)) {
	for name, create := range inits {
		t.Run(name, func(t *testing.T) {
			drivertest.TestInit(t, func(t testing.TB) func(context.Context) error {
				open := newState(t)
				pools := make(chan *sql.DB, 8)
				for range cap(pools) {
					pools <- open(t)
				}
				return func(ctx context.Context) error {
					db := <-pools
					defer func() { pools <- db }()
					return create(ctx, db)
				}
			})
		})
	}
}

func TestPostgresInitTogether(t *testing.T) {
	url := postgresServer.URL(postgresServer.NewDatabase(t))
	testInits(t, map[string]initOf{
		"store": initTags(initStore), "registry": initRegistry,
	}, func(t testing.TB) func(testing.TB) *sql.DB {
		if _, err := postgresDB(t, url).Exec("DROP TABLE IF EXISTS leaf_alloc, leaf_worker"); err != nil {
			t.Fatal(err)
		}
		return func(t testing.TB) *sql.DB { return postgresDB(t, url) }
	})
}
