package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/mysql"
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

func TestMySQLInitTogether(t *testing.T) {
	database := mariadb.NewDatabase(t)
	testInits(t, map[string]initOf{
		"store": initTags(initStore), "registry": initRegistry, "nodes": mysql.InitNodes,
	}, func(t testing.TB) func(testing.TB) *sql.DB {
		mariadb.Exec(t, database, "DROP TABLE IF EXISTS leaf_alloc, leaf_worker, WORKER_NODE")
		return func(t testing.TB) *sql.DB { return mysqlDB(t, mysqlConfig(t, mariadb, database)) }
	})
}

func TestInitTwiceSaysSoPlainly(t *testing.T) {
	db := mysqlDB(t, mysqlConfig(t, mariadb, mariadb.NewDatabase(t)))
	if err := initStore(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	const want = "init mysql store: the database has a table leaf_alloc already"
	if err := initStore(t.Context(), db, nil); !errors.Is(err, fs.ErrExist) || err.Error() != want {
		t.Errorf("error %v, want %q that is fs.ErrExist", err, want)
	}
}
