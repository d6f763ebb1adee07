package mysql_test

import (
	"sync"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A galera deals out the members of a cluster in turn.
type galera struct {
	*testserver.GaleraCluster
	mu   sync.Mutex
	next int
}

// config returns the configuration of the next member. That member knows the database by then.
func (g *galera) config(t testing.TB, database string) *gomysql.Config {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	g.CatchUp(t)
	return mysqlConfig(t, g.Member(g.next%3), database)
}

// Clients of the suites are each on another member than the one before.
func TestGalera(t *testing.T) {
	testserver.Long(t)
	g := &galera{GaleraCluster: testserver.Galera(t)}
	t.Run("store", func(t *testing.T) {
		drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
			database := g.Member(0).NewDatabase(t)
			g.Member(0).Exec(t, database, javaTable)
			return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store {
				cfg := g.config(t, database)
				cfg.Params["wsrep_sync_wait"] = "7" // a tag that one client creates is there for the next
				return openMySQL(t, mysqlDB(t, cfg))
			}}
		})
	})
	t.Run("registry", func(t *testing.T) {
		drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
			database := g.Member(0).NewDatabase(t)
			if err := initRegistry(t.Context(), mysqlDB(t, mysqlConfig(t, g.Member(0), database))); err != nil {
				t.Fatal(err)
			}
			return drivertest.RegistryBackend{
				Open: func(t testing.TB) worker.Registry { return mysqlRegistryOf(t, g.config(t, database)) },
				Corrupt: func(t testing.TB, id int64, text string) {
					corrupt(t, mysqlDB(t, g.config(t, database)), id, text)
				},
			}
		})
	})
	t.Run("forgets nothing", func(t *testing.T) {
		database := g.Member(0).NewDatabase(t)
		g.Member(0).Exec(t, database, workerTable)
		sqltest.WantForgetful(t, mysqlRegistryOf(t, g.config(t, database)), false)
	})
	t.Run("conflicts", func(t *testing.T) { galeraConflicts(t, g) })
	t.Run("nodes", func(t *testing.T) { galeraNodes(t, g) })
}

// One tag on all members at once, most of whose commits the cluster refuses: that
// stays between the store and the server.
func galeraConflicts(t *testing.T, g *galera) {
	const clients, calls, n = 6, 100, 7
	database := g.Member(0).NewDatabase(t)
	g.Member(0).Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	var all drivertest.Ranges
	var wg sync.WaitGroup
	for range clients {
		s := openMySQL(t, mysqlDB(t, g.config(t, database)))
		wg.Go(func() {
			for range calls {
				grant, err := s.Advance(t.Context(), "order", n)
				if err != nil {
					t.Error(err)
					return
				}
				if grant.Server != "" {
					t.Errorf("server %q, although a commit is agreed upon", grant.Server)
				}
				all.Add(grant.Range)
			}
		})
	}
	wg.Wait()
	if err := all.CheckExactly(leaf.Range{Start: 1, End: 1 + clients*calls*n}); err != nil {
		t.Error(err)
	}
	var conflicts int
	for i := range 3 {
		conflicts += galeraStatus(t, g.Member(i), "wsrep_local_cert_failures") + galeraStatus(t, g.Member(i), "wsrep_local_bf_aborts")
	}
	if conflicts == 0 {
		t.Error("no conflict: nothing was tested")
	}
	t.Logf("%d allocations, %d conflicts on the servers", clients*calls, conflicts)
}

func galeraStatus(t testing.TB, member *testserver.MariaDBServer, name string) (value int) {
	t.Helper()
	err := mysqlDB(t, mysqlConfig(t, member, "")).QueryRowContext(t.Context(),
		"SELECT variable_value FROM information_schema.global_status WHERE variable_name = ?", name).Scan(&value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
