package e2e

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// registries makes an empty registry of each kind. A claim on MySQL counts at once, so
// that it need not be waited for.
func registries(t testing.TB) map[string]string {
	t.Helper()
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	return map[string]string{
		"sqlite":    newRegistry(t),
		"mariadb":   mariadb.URL(database) + "?claim_delay=0s",
		"zookeeper": newTree(t, sharedZooKeeper.get(t)).pool(),
	}
}

// shortHorizon is soon over, and longer than a busy machine takes for an extension.
const shortHorizon = 5 * time.Second

// A node is killed for longer than its horizon, another one takes its worker ID, and it
// comes back with its files. CosId then uses one worker ID twice: it trusts its file.
func TestDeadBeyondTheHorizon(t *testing.T) {
	t.Parallel()
	part := figure(60_000, 2_600_000)
	for name, url := range registries(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all drivertest.Ranges
			config := func() nodeConfig {
				return nodeConfig{Workers: url, Data: t.TempDir(), WorkerBits: 1, Horizon: shortHorizon}
			}
			first := config()
			a := startNode(t, &all, first)
			taken := a.take(part).Worker
			c := startNode(t, &all, config()) // holds the other one of the two worker IDs
			c.take(1000)
			a.kill()
			b := startNode(t, &all, config())
			if got := b.take(part).Worker; got != taken {
				t.Fatalf("worker %d was taken, not %d of the dead node", got, taken)
			}
			c.stop()
			a = startNode(t, &all, first)
			until(t, 20*time.Second, "issuing", func() error { _, err := a.try(1); return err })
			for range 10 { // both at once
				a.send(fmt.Sprintf("take %d", part/10))
				if _, err := b.try(part / 10); err != nil {
					t.Fatalf("%v\n%s", err, b.output())
				}
				if _, err := a.receive(); err != nil {
					t.Fatalf("%v\n%s", err, a.output())
				}
			}
			checkRanges(t, &all, 4*int64(part))
		})
	}
}

// The same, but the node that returns is cut off from the registry, with the clock of its death: it
// cannot know that another node has its worker ID. It continues from its file, below its horizon;
// the other node started above.
func TestBackFromTheDeadAndCutOff(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	direct := fmt.Sprintf("127.0.0.1:%d", mariadb.Port)
	cable := startProxy(t, direct, 0)
	url := mariadb.URL(database) + "?claim_delay=0s"
	var all drivertest.Ranges
	c := nodeConfig{Workers: strings.Replace(url, direct, cable.addr, 1), Data: t.TempDir(), Horizon: 5500 * time.Millisecond,
		Tolerance: time.Minute}
	a := startNode(t, &all, c)
	part := figure(50_000, 4_000_000)
	a.take(part)
	died := time.Now()
	a.kill()
	b := startNode(t, &all, nodeConfig{Workers: url, Data: t.TempDir(), Horizon: 5500 * time.Millisecond})
	b.take(part)
	cable.cut()
	c.Skew = -time.Since(died)
	a = startNode(t, &all, c)
	until(t, 20*time.Second, "issuing from its file", func() error { _, err := a.try(1); return err })
	a.send(fmt.Sprintf("take %d", part))
	if _, err := b.try(part); err != nil {
		t.Fatalf("%v\n%s", err, b.output())
	}
	_, _ = a.receive() // it may reach its horizon
	if !strings.Contains(a.output(), "going on with the lease in the state file") {
		t.Errorf("it did not go on from its file:\n%s", a.output())
	}
	until(t, 20*time.Second, "at the end of its lease", func() error {
		if _, err := a.try(1000); err == nil {
			return fmt.Errorf("it still issues")
		}
		return nil
	})
	cable.mend()
	until(t, 10*time.Second, "told", func() error {
		if _, err := a.try(1); err == nil || !strings.Contains(err.Error(), "all 1 worker IDs are in use") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	b.stop()
	a.take(1000)
	checkRanges(t, &all, 3*int64(part))
}

// A node is stopped in the midst of its work for longer than its horizon, another node takes the
// only worker ID, and the first one continues under load.
func TestPausedBeyondTheHorizon(t *testing.T) {
	t.Parallel()
	part := figure(60_000, 3_400_000)
	for name, url := range registries(t) {
		t.Run(name, func(t *testing.T) {
			if name != "mariadb" {
				testserver.Long(t)
			}
			t.Parallel()
			var all drivertest.Ranges
			config := func() nodeConfig { return nodeConfig{Workers: url, Data: t.TempDir(), Horizon: shortHorizon} }
			a := startNode(t, &all, config())
			a.take(part)
			a.send(fmt.Sprintf("take %d", part))
			a.signal(syscall.SIGSTOP)
			b := startNode(t, &all, config())
			b.take(part)
			a.signal(syscall.SIGCONT)
			_, _ = a.receive() // its reserve, and perhaps an error
			until(t, 10*time.Second, "giving up", func() error {
				if _, err := b.try(part / 10); err != nil {
					t.Fatalf("%v\n%s", err, b.output())
				}
				if _, err := a.try(100); err == nil {
					return fmt.Errorf("it still issues")
				}
				return nil
			})
			until(t, 10*time.Second, "noticing", func() error {
				_, err := a.try(1)
				if err == nil || !strings.Contains(err.Error(), "all 1 worker IDs are in use") {
					return fmt.Errorf("it answers %v", err)
				}
				return nil
			})
			b.stop()
			a.take(part) // it has claimed again
			checkRanges(t, &all, 3*int64(part))
		})
	}
}

// The registry is away for longer than the horizon: until its return the nodes issue no IDs and
// report a clear error.
func TestRegistryAwayBeyondTheHorizon(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	zookeeper := testserver.ZooKeeper(t)
	db := testserver.MariaDB(t, nil)
	database := db.NewDatabase(t)
	initWorkers(t, db.URL(database))
	pool := newTree(t, zookeeper)
	for _, c := range []struct {
		name, url  string
		away, back func() error
	}{
		{"zookeeper stopped", pool.pool(), zookeeper.Stop, zookeeper.Start},
		{"mariadb frozen", db.URL(database) + "?claim_delay=0s", db.Pause, db.Resume},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			awayBeyondTheHorizon(t, c.url, c.away, c.back)
		})
	}
}

func awayBeyondTheHorizon(t *testing.T, url string, away, back func() error) {
	horizon := figure(2*time.Second, 20*time.Second)
	var all drivertest.Ranges
	n := startNode(t, &all, nodeConfig{Workers: url, Data: t.TempDir(), Horizon: horizon})
	n.take(1000)
	if err := away(); err != nil {
		t.Fatal(err)
	}
	a, err := n.try(1000)
	if err != nil {
		t.Fatalf("it fails before its horizon: %v", err)
	}
	end := a.Until
	until(t, horizon+5*time.Second, "at its horizon", func() error {
		_, err := n.try(1000)
		if err == nil {
			return fmt.Errorf("it still issues")
		}
		if text := err.Error(); !strings.Contains(text, "was not extended") || !strings.Contains(text, "look at the registry") {
			t.Fatalf("unclear: %v", err)
		}
		return nil
	})
	if early := time.Until(end); early > 3*time.Second { // IDs run up to 2 s ahead of the clock
		t.Errorf("it gave up %v before its horizon", early)
	}
	if a, err := n.try(1); err == nil {
		t.Errorf("it issued %v beyond its horizon", a.Ranges)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	n.take(1000)
	t.Logf("serving %v after the registry was back", time.Since(start).Round(time.Millisecond))
	checkRanges(t, &all, 3000)
}

// The registry loses a claim, as in a fail-over, and another node claims the same worker ID before
// the holder can notice: its claim counts only after the holder has noticed.
func TestRegistryLosesAClaim(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	part := figure(60_000, 3_400_000)
	db := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--innodb-flush-log-at-trx-commit=2"}}) // may lose writes
	database := db.NewDatabase(t)
	initWorkers(t, db.URL(database))
	var all drivertest.Ranges
	config := func() nodeConfig {
		return nodeConfig{Workers: db.URL(database) + "?claim_delay=6s", Data: t.TempDir(), Horizon: 10 * time.Second}
	}
	a := startNode(t, &all, config())
	a.take(part)
	a.signal(syscall.SIGSTOP)
	db.Exec(t, database, "DELETE FROM leaf_worker")
	if err := errors.Join(db.Stop(), db.Start()); err != nil {
		t.Fatal(err)
	}
	b := startNode(t, &all, config())
	until(t, 10*time.Second, "claiming", func() error {
		if _, err := b.try(1); err == nil || !strings.Contains(err.Error(), "may be used from") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	a.signal(syscall.SIGCONT)
	until(t, 15*time.Second, "issuing on the other node", func() error {
		_, _ = a.try(part / 10)
		_, err := b.try(1)
		return err
	})
	_, _ = a.try(part)
	if _, err := b.try(part); err != nil {
		t.Fatalf("%v\n%s", err, b.output())
	}
	if _, err := a.try(1); err == nil {
		t.Error("both issue under one worker ID")
	}
	checkRanges(t, &all, 2*int64(part))
}

// The registry loses an extension, and no other server is there: it is put back.
func TestRegistryLosesAnExtension(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	var all drivertest.Ranges
	n := startNode(t, &all, nodeConfig{Workers: mariadb.URL(database) + "?claim_delay=0s", Data: t.TempDir(), Horizon: 3 * time.Second})
	n.take(1000)
	mariadb.Exec(t, database, "DELETE FROM leaf_worker")
	until(t, 5*time.Second, "put back", func() error {
		if !strings.Contains(n.output(), "has lost writes") || queryInt(t, database, "SELECT COUNT(*) FROM leaf_worker") != 1 {
			return fmt.Errorf("not in\n%s", n.output())
		}
		return nil
	})
	for range 50 { // beyond the horizon of the lost lease
		if _, err := n.try(figure(4000, 300_000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	n.stop()
	checkRanges(t, &all, 200_000)
}
