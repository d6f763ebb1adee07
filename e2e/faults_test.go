package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A server issues nothing twice after a kill under load and a restart, on the embedded store and on
// MariaDB.
func TestKillNine(t *testing.T) {
	t.Parallel()
	kills := figure(4, 50)
	t.Run("sqlite", func(t *testing.T) {
		killNine(t, kills, "--data", filepath.Join(t.TempDir(), "data"))
	})
	t.Run("mariadb", func(t *testing.T) {
		database := mariadb.NewDatabase(t)
		mariadb.Exec(t, database, javaTable...)
		killNine(t, kills, "--store", mariadb.URL(database), "--data", filepath.Join(t.TempDir(), "data"))
	})
}

func killNine(t *testing.T, kills int, args ...string) {
	var current atomic.Pointer[server]
	current.Store(serve(t, args...))
	l := startLoad(t, 8, 20, sampleTag, func(int) *server { return current.Load() })
	for range kills {
		l.await(t, l.count.Load()+2000)
		current.Load().kill()
		current.Store(serve(t, args...))
	}
	l.await(t, l.count.Load()+2000)
	l.stop()
	l.check(t)
}

// After a clean stop of a single node its next ID follows its last.
func TestCleanStop(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	want := int64(1)
	for range 3 {
		s := serve(t, "--data", data)
		for range 50 {
			if got := s.next(sampleTag); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			want++
		}
		s.stop()
	}
}

// Two servers on one data directory, hence on one SQLite file, share the tag.
func TestTwoServersOnOneFile(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	servers := []*server{serveWith(t, "LEAF_SEGMENT_MAX_STOCK=5000", "--data", data), serveWith(t, "LEAF_SEGMENT_MAX_STOCK=5000", "--data", data)}
	first := firstIDs(servers...)
	l := startLoad(t, 8, 50, sampleTag, func(c int) *server { return servers[c%2] })
	l.seen.Shard().Add(first...)
	l.await(t, figure[int64](100_000, 2_000_000))
	l.stop()
	l.check(t)
	if n := l.errors.Load(); n != 0 {
		t.Errorf("%d failed calls", n)
	}
	for _, s := range servers {
		s.stop()
	}
}

// startDatabase starts a MariaDB of the test's own, to be stopped, with Java's table.
func startDatabase(t *testing.T) (db *testserver.MariaDBServer, url string) {
	t.Helper()
	db = testserver.MariaDB(t, nil)
	name := db.NewDatabase(t)
	db.Exec(t, name, javaTable...)
	return db, db.URL(name)
}

// The database stopped under load, for less than the stock lasts: not one call
// fails. A frozen one, whose connections just stand, is the harder case.
func TestOutage(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	outage := figure(6*time.Second, time.Minute)
	for _, c := range []struct {
		name      string
		stop, run func(*testserver.MariaDBServer) error
	}{
		{"stopped", (*testserver.MariaDBServer).Stop, (*testserver.MariaDBServer).Start},
		{"frozen", (*testserver.MariaDBServer).Pause, (*testserver.MariaDBServer).Resume},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, url := startDatabase(t)
			s := serve(t, "--store", url)
			first := s.stockUp(int64(4000 * outage.Seconds())) // 16 clients, 200 IDs a second each
			l := startLoad(t, 16, 0, sampleTag, func(int) *server { time.Sleep(5 * time.Millisecond); return s })
			l.seen.Shard().Add(first...)
			time.Sleep(time.Second)
			if err := c.stop(db); err != nil {
				t.Fatal(err)
			}
			before := l.count.Load()
			time.Sleep(outage)
			served := l.count.Load() - before
			if err := c.run(db); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			l.stop()
			l.check(t)
			if l.errors.Load() != 0 || served == 0 {
				t.Errorf("%d IDs served in an outage of %v, %d calls failed", served, outage, l.errors.Load())
			}
			t.Logf("%d IDs served in an outage of %v", served, outage)
		})
	}
}

// Beyond the stock calls fail quickly, and the server recovers by itself.
func TestOutageBeyondTheStock(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	db, url := startDatabase(t)
	s := serveWith(t, "LEAF_SEGMENT_MAX_STOCK=3000", "--store", url)
	s.next(sampleTag)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration // of the failed calls
	for deadline := time.Now().Add(30 * time.Second); len(took) < 20 && time.Now().Before(deadline); {
		start := time.Now()
		if _, err := s.ids(sampleTag, 500); err != nil {
			took = append(took, time.Since(start))
			if !strings.Contains(err.Error(), "500 Internal Server Error") {
				t.Fatalf("a Java client cannot tell this error: %v", err)
			}
		}
	}
	slices.Sort(took)
	if len(took) < 20 || took[len(took)/2] >= time.Second { // the wait of a call before the server knows
		t.Errorf("%d calls failed, after %v", len(took), took)
	}
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	until(t, 15*time.Second, "recovered", func() error {
		_, err := s.ids(sampleTag, 0)
		return err
	})
	t.Logf("serving %v after the database was back", time.Since(start))
}

// A server whose store is down when it starts is alive, not ready, and serves as
// soon as the store is up.
func TestStoreDownAtStart(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	db, url := startDatabase(t)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--store", url)
	if _, err := get(s.url + "/healthz"); err != nil {
		t.Error(err)
	}
	if body, err := get(s.url + "/readyz"); err == nil {
		t.Errorf("ready without a store: %s", body)
	}
	start := time.Now()
	if _, err := s.ids(sampleTag, 0); err == nil || time.Since(start) > 20*time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, 15*time.Second, "ready", func() error {
		_, err := get(s.url + "/readyz")
		return err
	})
	until(t, 15*time.Second, "serving", func() error {
		ids, err := s.ids(sampleTag, 0)
		if err == nil && ids[0] != 1 {
			t.Fatalf("the first ID is %d", ids[0])
		}
		return err
	})
}

// The counter set back by hand while serving: the guard lifts it, nothing is issued
// twice.
func TestCounterMovedBack(t *testing.T) {
	t.Parallel()
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable...)
	s := serveWith(t, "LEAF_SEGMENT_MAX_STOCK=5000", "--store", mariadb.URL(database))
	l := startLoad(t, 4, 100, sampleTag, func(int) *server { return s })
	l.await(t, 50_000)
	mariadb.Exec(t, database, "UPDATE leaf_alloc SET max_id = 1")
	l.await(t, l.count.Load()+50_000)
	l.stop()
	l.check(t)
	if maxID := column(t, database, "max_id"); maxID < 10_000_000 {
		t.Errorf("max_id is %d, the guard did not lift it", maxID)
	}
	if out := s.output(); !strings.Contains(out, "lost writes") {
		t.Errorf("nothing reported:\n%s", out)
	}
}

// A store that takes 50 ms, a step of 10, 64 clients: no error at all.
func TestSlowStore(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable...)
	mariadb.Exec(t, database, "UPDATE leaf_alloc SET step = 10")
	direct := fmt.Sprintf("127.0.0.1:%d", mariadb.Port)
	slow := startProxy(t, direct, 25*time.Millisecond).addr // each way
	for _, policy := range []string{"adaptive", "leaf"} {
		s := serveWith(t, "LEAF_SEGMENT_POLICY="+policy, "--store", strings.Replace(mariadb.URL(database), direct, slow, 1))
		first := firstIDs(s)
		l := startLoad(t, 64, 0, sampleTag, func(int) *server { return s })
		l.seen.Shard().Add(first...)
		l.await(t, figure[int64](20_000, 500_000))
		l.stop()
		l.check(t)
		if n := l.errors.Load(); n != 0 {
			t.Errorf("policy %s: %d failed calls", policy, n)
		}
		s.stop()
	}
}
