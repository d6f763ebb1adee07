package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/segment"
)

// A Driver is the New of a driver.
type Driver func(db *sql.DB, opts *sqldb.Options) (*sqldb.DB, error)

// Store opens the store alone.
func (d Driver) Store(db *sql.DB, opts *sqldb.Options) (*sqldb.Store, error) {
	both, err := d(db, opts)
	if err != nil {
		return nil, err
	}
	return both.Store(), nil
}

// Registry opens the registry alone.
func (d Driver) Registry(db *sql.DB, opts *sqldb.Options) (*sqldb.Registry, error) {
	both, err := d(db, opts)
	if err != nil {
		return nil, err
	}
	return both.Registry(), nil
}

// Pool opens a pool of connections for the length of a test.
func Pool(t testing.TB, c driver.Connector) *sql.DB {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { db.Close() })
	return db
}

// OpenStore opens the store for the length of a test.
func (d Driver) OpenStore(t testing.TB, db *sql.DB) *sqldb.Store {
	t.Helper()
	s, err := d.Store(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// OpenRegistry opens the registry for the length of a test.
func (d Driver) OpenRegistry(t testing.TB, db *sql.DB, opts *sqldb.Options) *sqldb.Registry {
	t.Helper()
	r, err := d.Registry(db, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// Init creates a store.
func (d Driver) Init(ctx context.Context, db *sql.DB, tags []segment.Tag) error {
	both, err := d(db, nil)
	if err != nil {
		return err
	}
	return errors.Join(both.Init(ctx, tags), both.Close())
}

// InitRegistry creates a registry.
func (d Driver) InitRegistry(ctx context.Context, db *sql.DB) error {
	both, err := d(db, nil)
	if err != nil {
		return err
	}
	return errors.Join(both.InitRegistry(ctx), both.Close())
}

// Exists reports whether the store exists.
func (d Driver) Exists(ctx context.Context, db *sql.DB) (bool, error) {
	both, err := d(db, nil)
	if err != nil {
		return false, err
	}
	defer both.Close()
	return both.Store().Exists(ctx)
}

// ExistsRegistry reports whether the registry exists.
func (d Driver) ExistsRegistry(ctx context.Context, db *sql.DB) (bool, error) {
	both, err := d(db, nil)
	if err != nil {
		return false, err
	}
	defer both.Close()
	return both.Registry().Exists(ctx)
}

// An Init creates one kind of table.
type Init func(ctx context.Context, db *sql.DB) error

// TestInits creates each kind of table several times at once, in a state of its own. Each caller
// has its own pool, like a process. Other has further kinds of tables besides those of the store
// and the registry.
func (d Driver) TestInits(t *testing.T, newState func(t testing.TB) (open func(testing.TB) *sql.DB), other map[string]Init) {
	inits := map[string]Init{
		"store": func(ctx context.Context, db *sql.DB) error {
			return d.Init(ctx, db, []segment.Tag{{Name: "order", Step: 10}})
		},
		"registry": d.InitRegistry,
	}
	maps.Copy(inits, other)
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

// Names lists the tags of a store, each as name@max_id, in order.
func Names(t testing.TB, s segment.Store) []string {
	t.Helper()
	var all []string
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s@%d", tag.Name, tag.MaxID))
	}
	slices.Sort(all)
	return all
}

// Exec runs statements on one connection.
func Exec(t testing.TB, conn *sql.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
