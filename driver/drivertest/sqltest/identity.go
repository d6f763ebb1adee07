package sqltest

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/segment"
)

// TestIdentity checks what becomes of the identity of a store; open returns a pool of a process of
// its own, to an empty database.
func (d Driver) TestIdentity(t *testing.T, open func(testing.TB) *sql.DB) {
	admin := open(t)
	exec := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	create := func() {
		t.Helper()
		if err := d.Init(t.Context(), admin, []segment.Tag{{Name: "order", MaxID: 1, Step: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	create()
	running := d.OpenStore(t, open(t))
	first := identityOf(t, running)

	exec("DROP TABLE leaf_store") // as an older release leaves a store
	stores := []*sqldb.Store{running}
	for range 7 {
		stores = append(stores, d.OpenStore(t, open(t)))
	}
	second := sameIdentity(t, stores)
	if second == first {
		t.Error("the identity came back after its table was dropped")
	}

	exec("DROP TABLE leaf_alloc")
	create()
	third := sameIdentity(t, stores)
	if third == second {
		t.Error("a store that was created anew in the same database has the identity of the one before")
	}
}

// sameIdentity asks all stores at once.
func sameIdentity(t *testing.T, stores []*sqldb.Store) string {
	t.Helper()
	seen := make([]string, len(stores))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() { seen[i] = identityOf(t, s) })
	}
	wg.Wait()
	for _, identity := range seen {
		if identity != seen[0] {
			t.Fatalf("one store, and the identities %q", seen)
		}
	}
	return seen[0]
}

// identityOf returns the identity of the next grant that has one. After a table was dropped one call
// may fail, and grants have no identity until another process has added the row.
func identityOf(t *testing.T, s *sqldb.Store) string {
	t.Helper()
	var g segment.Grant
	var failed error
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(time.Millisecond) {
		var err error
		g, err = s.Advance(t.Context(), "order", 1)
		switch {
		case err == nil && g.Store != "":
			return g.Store
		case err != nil && failed != nil:
			t.Errorf("two calls failed: %v, %v", failed, err)
			return ""
		case err != nil:
			failed = err
		}
	}
	t.Errorf("the grant is %+v", g)
	return ""
}
