package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// Nothing is configured, and nothing else runs: both schemes answer.
func TestSnowflakeOnTheFirstRun(t *testing.T) {
	t.Parallel()
	s := serve(t)
	start := time.Now()
	id := s.awaitSnowflake(5 * time.Second)
	t.Logf("first ID %v after the server listens", time.Since(start).Round(time.Millisecond))
	if off := time.Since(time.UnixMilli(id>>22 + javaEpoch)).Abs(); off > 3*time.Second {
		t.Errorf("ID %d is %v away from now", id, off)
	}
	if got := s.next(sampleTag); got != 1 {
		t.Errorf("the other scheme begins at %d", got)
	}
	text, err := get(s.url + "/decodeSnowflakeId?snowflakeId=" + strconv.FormatInt(id, 10))
	if err != nil || !strings.HasPrefix(text, `{"workerId":"0","sequenceId":"`) {
		t.Errorf("decoded %s, %v", text, err)
	}
	s.stop()
}

// One server serves several layouts at once, and each scheme alone.
func TestSnowflakeLayouts(t *testing.T) {
	t.Parallel()
	layouts := "snowflake:\n  layout: shop\n  layouts:\n    js53: js53\n" +
		"    shop: {epoch: 2026-01-01T00:00:00Z, tick: 10ms, time: 39, worker: 8, sequence: 10}\n"
	s := serve(t, "--config", config(t, "leaf.yaml", onlySnowflake+layouts), "--data", t.TempDir(), "--workers", newRegistry(t))
	s.awaitSnowflake(5 * time.Second)
	for key, bits := range map[string]int{"js53": 53, "shop": 57, "anything": 57} {
		seen := new(takes)
		for range figure(20, 200) {
			ranges, err := s.take(key, 500)
			if err != nil {
				t.Fatal(err)
			}
			seen.add(ranges...)
			if end := ranges[len(ranges)-1].End; end>>bits != 0 {
				t.Errorf("%s: %d has more than %d bits", key, end, bits)
			}
		}
		seen.check(t)
	}
	if _, err := s.ids(sampleTag, 0); err == nil || !strings.Contains(err.Error(), "segment.enable is false") {
		t.Errorf("a scheme that is off answers %v", err)
	}
	s.stop()
	s = serve(t, "--config", config(t, "leaf.yaml", "snowflake: {enable: false}\n"))
	if _, err := s.snowflake("x"); err == nil || !strings.Contains(err.Error(), "snowflake.enable is false") {
		t.Errorf("a scheme that is off answers %v", err)
	}
	if got := s.next(sampleTag); got != 1 {
		t.Errorf("the other scheme begins at %d", got)
	}
	s.stop()
}

// The configuration changes a layout: its name has other values now, so the server issues nothing
// until an operator undoes the change or gives it another name.
func TestLayoutChanged(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	args := byWorkers(t, newRegistry(t))
	start := func(sequence int) *server {
		text := fmt.Sprintf("snowflake:\n  layout: shop\n  layouts:\n"+
			"    shop: {epoch: 2026-01-01T00:00:00Z, tick: 1ms, time: 41, worker: 8, sequence: %d}\n", sequence)
		args[1] = config(t, "leaf.yaml", onlySnowflake+text)
		return serve(t, args...)
	}
	s := start(10)
	s.awaitSnowflake(5 * time.Second)
	s.stop()
	s = start(12)
	until(t, 5*time.Second, "refusing", func() error {
		id, err := s.snowflake("x")
		if err == nil {
			t.Fatalf("it issued %d", id)
		}
		if !strings.Contains(err.Error(), "IDs were issued under that name as 41/8/10 bits") {
			return err
		}
		return nil
	})
	if text := s.readiness(); !strings.Contains(text, "give the new layout another name") {
		t.Errorf("/readyz answers %s", text)
	}
	s.stop()
	s = start(10)
	s.awaitSnowflake(5 * time.Second)
	s.stop()
}

// A rolling change to a default layout of another name and other bits: keys that name no layout
// would get IDs twice, so the server with the new one issues nothing.
func TestDefaultLayoutChanged(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	args := byWorkers(t, newRegistry(t))
	start := func(name string, workers, sequence int) *server {
		text := fmt.Sprintf("snowflake:\n  layout: %s\n  layouts:\n"+
			"    %s: {epoch: 2026-01-01T00:00:00Z, tick: 1ms, time: 41, worker: %d, sequence: %d}\n", name, name, workers, sequence)
		args[1] = config(t, "leaf.yaml", onlySnowflake+text)
		return serve(t, args...)
	}
	a := start("shop", 10, 12)
	a.awaitSnowflake(5 * time.Second)
	b := start("store", 8, 14)
	until(t, 10*time.Second, "refusing", func() error {
		id, err := b.snowflake("x")
		if err == nil {
			t.Fatalf("it issued %d", id)
		}
		if !strings.Contains(err.Error(), "keep that default layout") {
			return err
		}
		return nil
	})
	a.stop()
	b.stop()
}

// A server issues nothing twice after a kill under load and a restart.
func TestSnowflakeKillNine(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		snowflakeKillNine(t, "--data", filepath.Join(t.TempDir(), "data"))
	})
	for name, url := range registries(t) {
		t.Run(name, func(t *testing.T) { snowflakeKillNine(t, byWorkers(t, url)...) })
	}
}

func snowflakeKillNine(t *testing.T, args ...string) {
	part := figure[int64](30_000, 250_000)
	var current atomic.Pointer[server]
	current.Store(serve(t, args...))
	l := startTakes(t, 4, 2000, func(int) *server { return current.Load() })
	kills := figure(5, 50)
	for range kills {
		l.await(t, l.count.Load()+part)
		current.Load().kill()
		current.Store(serve(t, args...))
	}
	l.await(t, l.count.Load()+part)
	l.stop()
	l.check(t)
	current.Load().stop()
}

// A server is paused, for longer than its horizon in the lab, and continues under load while another
// server has the only worker ID.
func TestServerPaused(t *testing.T) {
	t.Parallel()
	const horizon = time.Minute // the least that the configuration allows
	pause := figure(3*time.Second, horizon+20*time.Second)
	text := onlySnowflake + "snowflake:\n  horizon: 1m\n  layout: one\n  layouts:\n" +
		"    one: {epoch: 2026-01-01T00:00:00Z, tick: 1ms, time: 41, worker: 0, sequence: 12}\n"
	url := newTree(t, sharedZooKeeper.get(t)).pool()
	start := func(machine string) *server { // with locks of its own
		file := config(t, "leaf.yaml", text)
		return serveWith(t, "LEAF_ID_SPACE="+idSpace(t)+machine, "--config", file, "--data", t.TempDir(), "--workers", url)
	}
	a := start("a")
	a.awaitSnowflake(10 * time.Second)
	l := startTakes(t, 2, 2000, func(int) *server { return a })
	l.await(t, figure[int64](50_000, 3_000_000))
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b := start("b")
	lb := startTakes(t, 2, 2000, func(int) *server { return b })
	time.Sleep(pause)
	if pause < horizon {
		if n := lb.count.Load(); n > 0 {
			t.Errorf("%d IDs under the worker ID of a server that may go on", n)
		}
		b.kill()
	} else {
		lb.await(t, 5_000_000)
	}
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if pause > horizon {
		a.logged(15*time.Second, "the worker ID is used by another node")
		lb.await(t, lb.count.Load()+3_000_000)
		lb.stop()
		b.stop()
	}
	l.await(t, l.count.Load()+figure[int64](50_000, 3_000_000)) // it continues, or has claimed again
	lb.stop()
	l.stop()
	l.add(lb.seen.Sorted()...)
	l.check(t)
}

// The registry is down when servers start: one that finds its lease in its data directory serves,
// another one reports the problem, and both serve once the registry is back.
func TestRegistryDownAtStart(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	zookeeper := testserver.ZooKeeper(t)
	db := testserver.MariaDB(t, nil)
	database := db.NewDatabase(t)
	initWorkers(t, db.URL(database))
	for _, c := range []struct {
		name, url  string
		down, back func() error
	}{
		{"zookeeper stopped", newTree(t, zookeeper).pool(), zookeeper.Stop, zookeeper.Start},
		{"mariadb frozen", db.URL(database) + "?claim_delay=0s", db.Pause, db.Resume},
	} {
		t.Run(c.name, func(t *testing.T) { downAtStart(t, c.url, c.down, c.back) })
	}
}

func downAtStart(t *testing.T, url string, down, back func() error) {
	args := byWorkers(t, url)
	a := serve(t, args...)
	a.awaitSnowflake(10 * time.Second)
	var current atomic.Pointer[server]
	current.Store(a)
	l := startTakes(t, 2, 2000, func(int) *server { return current.Load() })
	l.await(t, 50_000)
	a.kill()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	a = serve(t, args...)
	current.Store(a)
	b := serve(t, byWorkers(t, url)...)
	a.awaitSnowflake(25 * time.Second)
	t.Logf("serving from the state file after %v", time.Since(start).Round(10*time.Millisecond))
	a.logged(time.Second, "going on with the lease in the state file")
	until(t, 10*time.Second, "told", func() error { // a call of the registry may take 5 s
		if _, err := b.snowflake("x"); err == nil || !strings.Contains(err.Error(), "ask the worker registry") {
			return fmt.Errorf("without a state file it answers %v", err)
		}
		return nil
	})
	if text := b.readiness(); !strings.Contains(text, "not ready: ") || !strings.Contains(text, "registry") {
		t.Errorf("/readyz answers %s", text)
	}
	l.await(t, l.count.Load()+50_000)
	if err := back(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	b.awaitSnowflake(30 * time.Second)
	t.Logf("the other one serves %v after the registry was back", time.Since(start).Round(10*time.Millisecond))
	lb := startTakes(t, 2, 2000, func(int) *server { return b })
	lb.await(t, figure[int64](50_000, 5_000_000))
	l.await(t, l.count.Load()+figure[int64](50_000, 5_000_000))
	l.stop()
	lb.stop()
	l.add(lb.seen.Sorted()...)
	l.check(t)
	a.stop()
	b.stop()
}

// At the ceiling of the format the server is bounded by its clock and not by its
// processor.
func TestSnowflakeCeiling(t *testing.T) {
	testserver.Long(t)
	s := serve(t)
	s.awaitSnowflake(5 * time.Second)
	const ceiling = 4096 * 1000
	start := time.Now()
	l := startTakes(t, 4, maxBatch, func(int) *server { return s })
	if lab() {
		until(t, time.Minute, "at the end of what can be borrowed", l.borrowed)
	}
	count, busy, from := l.count.Load(), s.cpu(), time.Now()
	time.Sleep(figure(2*time.Second, 10*time.Second))
	count, busy = l.count.Load()-count, s.cpu()-busy
	took := time.Since(from)
	l.stop()
	l.check(t)
	rate := float64(count) / took.Seconds()
	t.Logf("%.0f IDs/s of %d, with %.0f %% of a core", rate, ceiling, 100*busy.Seconds()/took.Seconds())
	if n := l.errors.Load(); n != 0 {
		t.Errorf("%d failed calls", n)
	}
	if lab() && rate > 1.01*ceiling {
		t.Errorf("%.0f IDs/s", rate)
	}
	if most := ceiling * (time.Since(start).Seconds() + 3); float64(l.count.Load()) > most { // 2 s ahead, and a tick
		t.Errorf("%d IDs, more than the %.0f that the format has", l.count.Load(), most)
	}
	s.stop()
}

// borrowed reports whether the latest ID in the layout leaf is not yet about 2 s ahead
// of the clock.
func (l *takes) borrowed() error {
	sorted := l.seen.Sorted()
	if len(sorted) == 0 {
		return errors.New("there is none")
	}
	latest := time.UnixMilli((sorted[len(sorted)-1].End-1)>>22 + javaEpoch)
	if ahead := time.Until(latest); ahead < 1950*time.Millisecond {
		return fmt.Errorf("it is %v ahead of the clock", ahead)
	}
	return nil
}

// cpu returns the processor time that the server has used.
func (s *server) cpu() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	var ticks int
	for _, field := range fields[12:14] { // utime and stime, 14 and 15 of all
		n, err := strconv.Atoi(field)
		if err != nil {
			s.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// All worker IDs are in use: the next server reports it, and takes the first returned or freed one.
func TestWorkersRunOut(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	text := onlySnowflake + "snowflake:\n  layout: two\n  layouts:\n" +
		"    two: {epoch: 2026-01-01T00:00:00Z, tick: 1ms, time: 41, worker: 1, sequence: 12}\n"
	url := newTree(t, sharedZooKeeper.get(t)).pool()
	start := func() *server {
		return serve(t, "--config", config(t, "leaf.yaml", text), "--data", t.TempDir(), "--workers", url)
	}
	servers := []*server{start(), start()}
	for _, s := range servers {
		s.awaitSnowflake(10 * time.Second)
	}
	third := start()
	until(t, 5*time.Second, "told", func() error {
		_, err := third.snowflake("x")
		if err == nil || !strings.Contains(err.Error(), "all 2 worker IDs are in use") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	if text := third.readiness(); !strings.Contains(text, "all 2 worker IDs are in use") {
		t.Errorf("/readyz answers %s", text)
	}
	if text := third.output(); !strings.Contains(text, "leaf worker list") {
		t.Errorf("the log has no hint:\n%s", text)
	}
	servers[0].stop()
	third.awaitSnowflake(10 * time.Second)

	list, err := command(t, "worker", "list", "--server", third.url)
	if err != nil || strings.Count(list, "\n") != 3 || !strings.Contains(list, "mine") || !strings.Contains(list, "yes") {
		t.Errorf("%v\n%s", err, list)
	}
	dead := strconv.FormatInt(1-third.twoWorker(), 10)
	servers[1].kill()
	out, err := command(t, "worker", "free", dead, "--yes", "--server", third.url)
	if err != nil || !strings.Contains(out, "freed worker ID "+dead) {
		t.Fatalf("%v\n%s", err, out)
	}
	if list, err = command(t, "worker", "list", "--workers", url); err != nil || strings.Count(list, " no ") != 1 {
		t.Errorf("%v\n%s", err, list)
	}
	if out, err := command(t, "worker", "free", strconv.FormatInt(third.twoWorker(), 10), "--yes", "--server", third.url); err == nil ||
		!strings.Contains(out, "in use, by this server") {
		t.Errorf("%v\n%s", err, out)
	}
	if !lab() {
		return // the freed one is claimable in two minutes
	}
	start().awaitSnowflake(3 * time.Minute)
}

// twoWorker returns the worker ID that the server uses in the layout of one worker bit.
func (s *server) twoWorker() int64 {
	s.t.Helper()
	id, err := s.snowflake("x")
	if err != nil {
		s.t.Fatal(err)
	}
	return id >> 12 & 1
}
