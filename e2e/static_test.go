package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// Two servers of one machine are given the same worker ID, with a data directory each:
// the second one does not start while the first one lives, and then waits until the
// first one's times have passed.
func TestStaticTwice(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	url := fmt.Sprintf("static:%d", testserver.FreeWorker(t, 1023))
	file := config(t, "leaf.yaml", onlySnowflake)
	start := func() *server {
		return launch(t, append([]string{leafBinary}, serveArgs([]string{"--config", file, "--data", filepath.Join(t.TempDir(), "data"), "--workers", url})...)...)
	}
	a := start()
	a.awaitListening()
	a.awaitSnowflake(2 * time.Minute)
	l := startTakes(t, 1, 200, func(int) *server { return a })
	l.await(t, 50_000)
	b := start()
	select {
	case <-b.exited:
	case b.url = <-b.urls:
		b.awaitSnowflake(15 * time.Second)
		lb := startTakes(t, 1, 200, func(int) *server { return b })
		lb.await(t, 50_000)
		lb.stop()
		l.add(lb.seen.Sorted()...)
		t.Errorf("two servers serve %s", url)
	}
	if want := "is in use by another process on this machine: give each server a worker ID of its own"; !strings.Contains(b.output(), want) {
		t.Errorf("the second server says %s, want %s", b.output(), want)
	}
	l.stop()
	a.kill()
	c := start()
	c.awaitListening()
	if !lab() { // TestStaticDirectoryLost shows that c waits
		l.check(t)
		return
	}
	c.awaitSnowflake(2 * time.Minute)
	lc := startTakes(t, 1, 200, func(int) *server { return c })
	lc.await(t, 50_000)
	lc.stop()
	l.add(lc.seen.Sorted()...)
	l.check(t)
}

// A server whose data directory was lost waits for the largest max_ahead that its predecessor
// can have had, not for its own.
func TestStaticDirectoryLost(t *testing.T) {
	t.Parallel()
	file := config(t, "leaf.yaml", "snowflake: {enable: true, max_ahead: 1ms}\nuid: {enable: true, max_ahead: 1s}\n")
	url := fmt.Sprintf("static:%d", testserver.FreeWorker(t, 1023))
	start := time.Now()
	s := serve(t, "--config", file, "--data", filepath.Join(t.TempDir(), "data"), "--workers", url)
	until(t, 20*time.Second, "waiting for the longest max_ahead", func() error {
		if wait := waitOf(t, s) + time.Since(start); wait < 62*time.Second {
			return fmt.Errorf("it waits %v", wait)
		}
		return nil
	})
}

// One start with a clock a year ahead makes a chosen worker ID wait for a year. An operator who knows
// that no ID of that year was kept frees it.
func TestStaticClockAhead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*node){"stopped": (*node).stop, "killed": (*node).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			staticClockAhead(t, end)
		})
	}
}

func staticClockAhead(t *testing.T, end func(*node)) {
	id := testserver.FreeWorker(t, 1023)
	url, data := fmt.Sprintf("static:%d", id), filepath.Join(t.TempDir(), "data")
	var all drivertest.Ranges
	n := startNode(t, &all, nodeConfig{Workers: url, Data: data, WorkerBits: 10, Horizon: 30 * time.Minute, Skew: 365 * 24 * time.Hour})
	n.take(10_000)
	end(n)
	start := func() *server {
		return serve(t, "--config", config(t, "leaf.yaml", onlySnowflake), "--data", data, "--workers", url)
	}
	s := start()
	s.logged(10*time.Second, "leaf worker free")
	if wait := waitOf(t, s); wait < 364*24*time.Hour {
		t.Fatalf("it waits only %v: nothing is tested", wait)
	}
	leafCommand(t, "worker", "free", fmt.Sprint(id), "--yes", "--server", s.url)
	freed := time.Now()
	for range 2 { // nothing brings that year back
		until(t, 20*time.Second, "waiting for two minutes", func() error {
			if wait := waitOf(t, s); wait > 2*time.Minute {
				return fmt.Errorf("it waits for %v", wait)
			}
			return nil
		})
		s.stop()
		s = start()
	}
	if !lab() {
		return
	}
	s.awaitSnowflake(3 * time.Minute)
	t.Logf("it serves %v after it was freed", time.Since(freed).Round(time.Second))
	ranges, err := s.take("x", maxBatch)
	if err != nil {
		t.Fatal(err)
	}
	all.Add(ranges...)
	if err := all.Check(); err != nil {
		t.Error(err)
	}
}

var usedUpTo = regexp.MustCompile(`times up to (\S+) may have been issued`)

// waitOf returns how long a server says that it waits for its worker ID, 0 if it does
// not.
func waitOf(t testing.TB, s *server) time.Duration {
	t.Helper()
	m := usedUpTo.FindStringSubmatch(s.readiness())
	if m == nil {
		return 0
	}
	end, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(end)
}

// Two servers of one machine with an embedded database each: both registries say that worker ID 0
// is free, and the servers have different ones all the same.
func TestTwoRegistriesOnOneMachine(t *testing.T) {
	t.Parallel()
	servers := make([]*server, 2)
	for i := range servers {
		servers[i] = serve(t, "--data", filepath.Join(t.TempDir(), "data"))
		servers[i].awaitSnowflake(15 * time.Second)
	}
	if a, b := servers[0].worker(), servers[1].worker(); a == b {
		t.Errorf("both have worker ID %d", a)
	}
	l := startTakes(t, 2, 200, func(i int) *server { return servers[i%2] })
	l.await(t, 50_000)
	l.stop()
	l.check(t)
	servers[0].stop()
	again := serve(t, "--data", filepath.Join(t.TempDir(), "data"))
	again.awaitSnowflake(15 * time.Second)
	if a, b := again.worker(), servers[1].worker(); a == b {
		t.Errorf("a new server has worker ID %d of the one that runs", a)
	}
}
