package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// startGaleraFleet starts three members and three servers, each on another member while all are
// well. Their stock is small, so that callers notice the cluster's faults at once. The stocked server
// uses the first member and has the default stock.
func startGaleraFleet(t testing.TB) (f *fleet, c *testserver.GaleraCluster, stocked *load) {
	t.Helper()
	c = testserver.Galera(t)
	database := c.Member(0).NewDatabase(t)
	f = &fleet{t: t, ids: make(map[string]*drivertest.IDs)}
	tags := []segment.Tag{{Name: sampleTag, MaxID: 1, Step: 50}}
	for _, name := range []string{"order", "user", "invoice"} {
		tags = append(tags, segment.Tag{Name: name, MaxID: 1, Step: 50})
		f.ids[name] = new(drivertest.IDs)
	}
	c.CatchUp(t)
	initBoth(t, c.URL(database, 0), tags)
	start := func(member int, args ...string) *server {
		s := serve(t, append(args, "--store", c.URL(database, member), "--data", filepath.Join(t.TempDir(), "data"))...)
		s.awaitSnowflake(10 * time.Second)
		return s
	}
	for member := range 3 {
		f.servers = append(f.servers, start(member, "--config", config(t, "leaf.yaml", "segment: {max_stock: 200}\n")))
	}
	s := start(0)
	first := s.stockUp(figure[int64](60_000, 600_000)) // 4 clients, 200 IDs a second each
	stocked = startLoad(t, 4, 0, sampleTag, func(int) *server { time.Sleep(5 * time.Millisecond); return s })
	stocked.seen.Shard().Add(first...)
	f.startClients()
	return f, c, stocked
}

// Each of three members is killed in turn, and one is frozen until the others have dropped it, while
// three servers take ranges from all of them and hold worker IDs: no ID comes twice, each server
// finds another member, and the stocked server fails no call.
func TestGaleraMembersFail(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	f, c, stocked := startGaleraFleet(t)
	event := func(name string, member int, do, undo func(int) error) {
		t.Helper()
		f.all()
		f.report("before")
		start := time.Now()
		if err := do(member); err != nil {
			t.Fatal(err)
		}
		if err := c.AwaitSize((member+1)%3, 2); err != nil {
			t.Fatal(err)
		}
		dropped := time.Since(start)
		f.all()
		time.Sleep(figure(0, 5*time.Second))
		f.report(fmt.Sprintf("m%d %s, dropped in %v", member, name, dropped.Round(time.Millisecond)))
		if err := undo(member); err != nil {
			t.Fatal(err)
		}
		f.all()
		f.report("back again")
	}
	for end := time.Now().Add(figure(0, 2*time.Minute)); ; {
		for member := range figure(1, 3) {
			event("killed", member, c.Kill, c.Restart)
		}
		event("frozen", 1, c.Pause, c.Resume)
		if time.Now().After(end) {
			break
		}
	}
	f.stop()
	f.check()
	stocked.stop()
	stocked.check(t)
	if n := stocked.errors.Load(); n != 0 {
		t.Errorf("%d calls failed on the server with a stock", n)
	}
	for _, s := range f.servers {
		s.stop()
	}
}
