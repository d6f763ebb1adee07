package e2e

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// newPair starts a semi-synchronous pair with Java's table and returns the URL that
// names both servers, and the name of the database.
func newPair(t *testing.T, opts testserver.MariaDBPairOptions) (pair *testserver.MariaDBPairServer, url, database string) {
	t.Helper()
	pair = testserver.MariaDBPair(t, &opts)
	database = pair.Primary.NewDatabase(t)
	pair.Primary.Exec(t, database, javaTable...)
	pair.CatchUp(t)
	return pair, pair.URL(database), database
}

// impatient is a primary that soon continues without its replica.
var impatient = testserver.MariaDBPairOptions{Timeout: 50 * time.Millisecond}

// servePair starts n servers, each with a data directory of its own, on a stock so small
// that each asks the store all the time.
func servePair(t *testing.T, url string, n int) (servers []*server) {
	t.Helper()
	for range n {
		servers = append(servers, serveWith(t, "LEAF_SEGMENT_MAX_STOCK=5000", "--store", url, "--data", filepath.Join(t.TempDir(), "data")))
	}
	return servers
}

// failOver kills the primary and promotes the replica at once.
func failOver(t *testing.T, pair *testserver.MariaDBPairServer) {
	t.Helper()
	if err := pair.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	pair.Promote(t)
}

// watchSilence returns a function for the longest pause in service since the call.
func watchSilence(t *testing.T, l *tally) (longest func() time.Duration) {
	var most time.Duration
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for count, since := l.count.Load(), time.Now(); ; {
			most = max(most, time.Since(since))
			if now := l.count.Load(); now != count {
				count, since = now, time.Now()
			}
			select {
			case <-done:
				return
			case <-poll.C:
			}
		}
	})
	end := sync.OnceFunc(func() { close(done); wg.Wait() })
	t.Cleanup(end)
	return func() time.Duration { end(); return most.Round(time.Millisecond) }
}

// trips returns how many of the servers have noticed that the store lost writes.
func trips(servers []*server) (n int) {
	for _, s := range servers {
		if strings.Contains(s.output(), "the store has lost writes") {
			n++
		}
	}
	return n
}

// The primary of a semi-synchronous pair continues without its replica, as it does by default, and
// dies; the replica takes over without the last writes. Servers that knew the lost primary issue
// nothing twice: the guard of the first that asks lifts the counter above all of them.
func TestFailOverLosesWrites(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for _, servers := range []int{1, 3} {
		for range figure(1, 5) {
			t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) { failOverLosesWrites(t, servers) })
		}
	}
}

func failOverLosesWrites(t *testing.T, n int) {
	pair, url, database := newPair(t, impatient)
	servers := servePair(t, url, n)
	l := startLoad(t, 6, 100, sampleTag, func(c int) *server { return servers[c%n] })
	l.await(t, 20_000)
	pair.Break(t)
	l.await(t, l.count.Load()+figure[int64](50_000, 500_000))
	silence := watchSilence(t, &l.tally)
	before, kept := maxID(t, pair.Primary, database), maxID(t, pair.Replica, database)
	failOver(t, pair)
	l.await(t, l.count.Load()+figure[int64](50_000, 500_000))
	longest := silence()
	until(t, time.Minute, "noticed", func() error { // the others may have served all that, and one not a call
		if got := trips(servers); got != n {
			return fmt.Errorf("%d of %d servers did", got, n)
		}
		return nil
	})
	l.stop()
	l.check(t)
	if before-kept < 10_000 {
		t.Errorf("the primary stood at %d and the replica at %d: nothing to speak of was lost", before, kept)
	}
	t.Logf("the primary stood at %d and the replica at %d; the guard tripped on %d of %d servers; longest silence %v", before, kept, n, n, longest)
}

// maxID returns the counter of the sample row on one server of a pair.
func maxID(t *testing.T, db *testserver.MariaDBServer, database string) (n int64) {
	t.Helper()
	pool, err := sql.Open("mysql", db.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.QueryRow("SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", sampleTag).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// What stays possible: a server without a memory of the lost primary asks first, while
// those that remember do not ask. It deals the lost IDs again, until one of them does.
func TestFailOverWithoutMemory(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	pair, url, _ := newPair(t, impatient)
	old := servePair(t, url, 2)
	pair.Break(t)
	before := make(map[int64]bool)
	collect(t, before, figure(200, 2000), old...)
	signalAll(t, old, syscall.SIGSTOP) // or they would ask for the next range by themselves
	failOver(t, pair)
	fresh := servePair(t, url, 1)
	after := make(map[int64]bool)
	collect(t, after, figure(200, 2000), fresh...)
	twice := shared(before, after)
	if trips(fresh) != 0 || twice == 0 {
		t.Errorf("a server that knows nothing noticed, or nothing was lost: %d IDs twice", twice)
	}
	signalAll(t, old, syscall.SIGCONT)
	later := make(map[int64]bool)
	collect(t, later, figure(200, 2000), old...)
	if trips(old) == 0 {
		t.Error("the guard did not trip on a server that remembers")
	}
	if again := shared(later, before) + shared(later, after); again != 0 {
		t.Errorf("%d IDs twice after the guard had tripped", again)
	}
	t.Logf("%d IDs of %d that the fresh server issued were issued before the loss too; none since a server that remembers asked", twice, len(after))
}

func signalAll(t *testing.T, servers []*server, sig syscall.Signal) {
	t.Helper()
	for _, s := range servers {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
}

// collect asks each server for calls × 100 IDs.
func collect(t *testing.T, into map[int64]bool, calls int, servers ...*server) {
	t.Helper()
	for range calls {
		for _, s := range servers {
			until(t, 20*time.Second, "serving", func() error {
				ids, err := s.ids(sampleTag, 100)
				for _, id := range ids {
					if into[id] {
						t.Fatalf("%d was issued twice", id)
					}
					into[id] = true
				}
				return err
			})
		}
	}
}

// shared returns how many IDs are in both.
func shared(a, b map[int64]bool) (n int) {
	for id := range a {
		if b[id] {
			n++
		}
	}
	return n
}

// A fail-over to a replica that had confirmed every commit.
func TestFailOverLosesNothing(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for range figure(1, 5) {
		pair, url, _ := newPair(t, testserver.MariaDBPairOptions{AfterSync: true})
		servers := servePair(t, url, 3)
		l := startLoad(t, 6, 100, sampleTag, func(c int) *server { return servers[c%3] })
		l.await(t, figure[int64](50_000, 500_000))
		silence := watchSilence(t, &l.tally)
		failOver(t, pair)
		l.await(t, l.count.Load()+figure[int64](50_000, 500_000))
		longest := silence()
		if err := pair.ReturnReadOnly(); err != nil {
			t.Fatal(err)
		}
		l.await(t, l.count.Load()+20_000)
		l.stop()
		l.check(t)
		t.Logf("longest silence %v", longest)
	}
}

// The registry of worker IDs goes over without the last writes. A holder that stays
// connected puts its record back, or, where another one has claimed its worker ID
// meanwhile, stops before that one's claim counts.
func TestFailOverOfRegistry(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	part := figure(60_000, 3_400_000)
	pair, url, _ := newPair(t, impatient)
	initWorkers(t, url)
	pair.CatchUp(t)
	var all drivertest.Ranges
	config := func() nodeConfig {
		return nodeConfig{Workers: url + "?claim_delay=6s", Data: t.TempDir(), WorkerBits: 1, Horizon: 10 * time.Second}
	}
	a := startNode(t, &all, config())
	a.take(part)
	pair.CatchUp(t)
	pair.Break(t)
	b := startNode(t, &all, config()) // its claim is lost
	lost := b.take(part).Worker
	before, _ := a.try(1)
	until(t, 10*time.Second, "extending", func() error { // this write is lost, too
		if now, err := a.try(1); err != nil || !now.Until.After(before.Until) {
			return fmt.Errorf("until %v, %v", now.Until, err)
		}
		return nil
	})
	b.signal(syscall.SIGSTOP)
	failOver(t, pair)
	c := startNode(t, &all, config())
	until(t, 10*time.Second, "claiming", func() error {
		if _, err := c.try(1); err == nil || !strings.Contains(err.Error(), "the registry may lose writes") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	b.signal(syscall.SIGCONT)
	until(t, 15*time.Second, "issuing on the other node", func() error {
		_, _ = b.try(part / 10)
		if _, err := a.try(part / 10); err != nil {
			t.Fatalf("%v\n%s", err, a.output())
		}
		_, err := c.try(1)
		return err
	})
	answer, err := c.try(part)
	if err != nil || answer.Worker != lost {
		t.Fatalf("worker %d, want %d; %v\n%s", answer.Worker, lost, err, c.output())
	}
	if _, err := b.try(1); err == nil {
		t.Error("two nodes issue under one worker ID")
	}
	if !strings.Contains(a.output(), "has lost writes") {
		t.Errorf("the first holder put nothing back:\n%s", a.output())
	}
	checkRanges(t, &all, 3*int64(part))
}
