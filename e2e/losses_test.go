package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A lossyRegistry is a MariaDB that may lose writes, with one worker ID, and a way to
// it that can be cut.
type lossyRegistry struct {
	*testserver.MariaDBServer
	database string
	cable    *proxy
	url      string // by the cable
	direct   string
}

func newLossyRegistry(t *testing.T, delay time.Duration) *lossyRegistry {
	db := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--innodb-flush-log-at-trx-commit=2"}})
	database := db.NewDatabase(t)
	initWorkers(t, db.URL(database))
	direct := fmt.Sprintf("127.0.0.1:%d", db.Port)
	cable := startProxy(t, direct, delay)
	url := db.URL(database) + "?claim_delay=6s"
	return &lossyRegistry{db, database, cable, strings.Replace(url, direct, cable.addr, 1), url}
}

// lose has the registry forget everything, as in a fail-over to a replica that lags.
func (r *lossyRegistry) lose(t *testing.T) { r.Exec(t, r.database, "DELETE FROM leaf_worker") }

// takeBoth has two nodes issue side by side for a while, until the first one refuses as wanted.
func takeBoth(a, b *node, d time.Duration, want string) {
	a.t.Helper()
	begin := time.Now()
	until(a.t, minWait, "refusing", func() error {
		a.send("take 20000")
		_, _ = b.try(20_000)
		_, err := a.receive()
		if time.Since(begin) < d || err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("it answers %v, want %q", err, want)
		}
		return nil
	})
}

// A claim is lost before it is confirmed, because the network fails between the two;
// another node claims the worker ID, and then the first one reaches the registry.
func TestClaimLostBeforeItIsConfirmed(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	r := newLossyRegistry(t, 15*time.Millisecond)
	var all drivertest.Ranges
	first := nodeConfig{Workers: r.url, Data: t.TempDir(), Horizon: 30 * time.Second}
	a := startNode(t, &all, first)
	until(t, 20*time.Second, "claiming", func() error { // which waits
		if _, err := a.try(1); err == nil || !strings.Contains(err.Error(), "the registry may lose writes") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	r.cable.cut()
	if log := a.output(); strings.Contains(log, "holding a worker ID") {
		t.Fatalf("the claim was confirmed already:\n%s", log)
	}
	r.lose(t)
	b := startNode(t, &all, nodeConfig{Workers: r.direct, Data: t.TempDir(), Horizon: 30 * time.Second})
	b.take(10_000)
	r.cable.mend()
	takeBoth(a, b, 6*time.Second, "all 1 worker IDs are in use")
	b.take(10_000)
	checkRanges(t, &all, 100_000)
}

// A node is killed, the registry loses its lease, and another node claims the worker
// ID. The first one is started again, and cannot reach the registry.
func TestLeaseLostWhileDead(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	r := newLossyRegistry(t, 0)
	var all drivertest.Ranges
	first := nodeConfig{Workers: r.url, Data: t.TempDir(), Horizon: 30 * time.Second}
	a := startNode(t, &all, first)
	a.take(10_000)
	time.Sleep(4 * time.Second) // the lease is extended meanwhile
	a.take(10_000)
	a.kill()
	r.lose(t)
	r.cable.cut()
	b := startNode(t, &all, nodeConfig{Workers: r.direct, Data: t.TempDir(), Horizon: 30 * time.Second})
	b.take(10_000)
	a = startNode(t, &all, first)
	takeBoth(a, b, 6*time.Second, "ask the worker registry")
	b.take(10_000)
	checkRanges(t, &all, 100_000)
}

// The disk loses a node's last write to its state file: the mark before it is lower than the issued
// times. The next process must neither continue from it, nor hand the worker ID back there.
func TestStateFileLosesItsLastWrite(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{true, false} {
		t.Run(fmt.Sprintf("registry away %v", cut), func(t *testing.T) {
			t.Parallel()
			loseLastMark(t, cut)
		})
	}
}

func loseLastMark(t *testing.T, cut bool) {
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	direct := fmt.Sprintf("127.0.0.1:%d", mariadb.Port)
	cable := startProxy(t, direct, 0)
	var all drivertest.Ranges
	c := nodeConfig{Workers: strings.Replace(mariadb.URL(database), direct, cable.addr, 1) + "?claim_delay=0s",
		Data: t.TempDir(), Horizon: 100 * time.Second}
	a := startNode(t, &all, c)
	a.take(1000)
	time.Sleep(6 * time.Second) // the mark is behind the clock by then
	a.take(5_000_000)
	a.kill()
	loseNewerSlot(t, c)
	refusal := "all 1 worker IDs are in use"
	if cut {
		cable.cut()
		refusal = "ask the worker registry"
	}
	a = startNode(t, &all, c)
	begin := time.Now()
	until(t, minWait, "refusing", func() error {
		_, err := a.try(100_000)
		if time.Since(begin) < 6*time.Second || err == nil || !strings.Contains(err.Error(), refusal) {
			return fmt.Errorf("it answers %v, want %q", err, refusal)
		}
		return nil
	})
	checkRanges(t, &all, 5_000_000)
}

// newerSlot returns the newer slot of a node's state file, and its content.
func newerSlot(c nodeConfig) (slot int, text string) {
	content, _ := os.ReadFile(filepath.Join(c.Data, "worker-0"))
	newest := 0
	for i := range len(content) / 4096 {
		var version, number int
		of := string(content[i*4096:][:4096])
		if n, _ := fmt.Sscanf(of, "leaf-slot %d %d", &version, &number); n == 2 && number > newest {
			slot, text, newest = i, of, number
		}
	}
	return slot, text
}

// loseNewerSlot zeroes it, in place: it stays the same file.
func loseNewerSlot(t *testing.T, c nodeConfig) {
	t.Helper()
	slot, text := newerSlot(c)
	f, err := os.OpenFile(filepath.Join(c.Data, "worker-0"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, len(text)), int64(slot)*4096); err != nil {
		t.Fatal(err)
	}
}
