package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// onlySnowflake turns the other scheme off.
const onlySnowflake = "segment: {enable: false}\n"

// config writes a configuration file and returns its path.
func config(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// byWorkers returns the arguments of a server with time-based IDs only.
func byWorkers(t testing.TB, url string, more ...string) []string {
	t.Helper()
	return append([]string{"--config", config(t, "leaf.yaml", onlySnowflake), "--data", filepath.Join(t.TempDir(), "data"),
		"--workers", url}, more...)
}

const ourIP = "192.0.2.1"

// startTogether starts servers at ourIP with the given ports all at once.
func startTogether(t testing.TB, tr *tree, ports ...int) []*server {
	t.Helper()
	var servers []*server
	for _, port := range ports {
		args := serveArgs(byWorkers(t, tr.leaf(ourIP, port)))
		servers = append(servers, launch(t, append([]string{leafBinary}, args...)...))
	}
	for _, s := range servers {
		s.awaitListening()
	}
	return servers
}

// Three servers start at once on an empty ZooKeeper, next to a server of Java Leaf that found no
// tree, and so keeps worker 0, not its node's number.
func TestFirstStartBesideJavaLeaf(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for _, first := range []string{"anybody", "ours"} {
		t.Run(first+" first", func(t *testing.T) { firstStart(t, first == "ours") })
	}
}

func firstStart(t *testing.T, oursFirst bool) {
	tr := newTree(t, sharedZooKeeper.get(t))
	var servers []*server
	java := startJavaNode(t, tr, "192.0.2.9", "8080", func() {
		servers = startTogether(t, tr, 8081, 8082, 8083)
		for _, s := range servers {
			if oursFirst {
				s.awaitSnowflake(20 * time.Second)
			}
		}
	})
	workers := map[int64]bool{0: true} // Java's
	for _, s := range servers {
		id := workerOf(s.awaitSnowflake(20 * time.Second))
		if workers[id] {
			t.Fatalf("worker %d is used twice\n%s", id, s.output())
		}
		workers[id] = true
	}
	l := startTakes(t, 6, figure(2000, maxBatch), func(c int) *server { return servers[c%3] })
	ctx, cancel := context.WithCancel(t.Context())
	l.wg.Go(func() { java.issue(ctx, l) })
	l.await(t, figure[int64](1_000_000, 20_000_000))
	checkJavaTree(t, tr)
	cancel()
	l.stop()
	l.check(t)
	for _, s := range servers {
		s.stop()
	}
	checkJavaTree(t, tr)
}

// checkJavaTree compares the tree with Java Leaf's, byte for byte.
func checkJavaTree(t testing.TB, tr *tree) {
	t.Helper()
	for _, empty := range []string{tr.chroot + "/snowflake", tr.path(), tr.path("forever")} {
		if data := tr.read(empty); data != "" {
			t.Errorf("%s holds %q", empty, data)
		}
	}
	if names := tr.children(tr.chroot + "/snowflake"); !slices.Equal(names, []string{leafName}) {
		t.Errorf("below /snowflake: %v", names)
	}
	name := regexp.MustCompile(`^(\d+\.\d+\.\d+\.\d+):(\d+)-\d{10}$`)
	for _, child := range tr.children(tr.path("forever")) {
		m := name.FindStringSubmatch(child)
		if m == nil {
			t.Errorf("below forever: %q", child)
			continue
		}
		want := fmt.Sprintf(`^\{"ip":"%s","port":"%s","timestamp":\d{13}\}$`, regexp.QuoteMeta(m[1]), m[2])
		if data := tr.read(tr.path("forever", child)); !regexp.MustCompile(want).MatchString(data) {
			t.Errorf("%s holds %s", child, data)
		}
		if kids := tr.children(tr.path("forever", child)); len(kids) != 0 {
			t.Errorf("below %s: %v", child, kids)
		}
	}
}

// A server of Java Leaf joins ours, is started again, and leaves.
func TestJavaLeafJoins(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	tr := newTree(t, sharedZooKeeper.get(t))
	servers := startTogether(t, tr, 8081, 8082)
	for _, s := range servers {
		s.awaitSnowflake(20 * time.Second)
	}
	var restarted atomic.Pointer[server]
	restarted.Store(servers[0])
	l := startTakes(t, 2, 2000, func(c int) *server {
		if c == 0 {
			return restarted.Load()
		}
		return servers[1]
	})
	var before int64
	for life := range 3 {
		java := startJavaNode(t, tr, "192.0.2.9", "8080", nil)
		if life > 0 && java.worker != before {
			t.Errorf("worker %d after a restart, %d before", java.worker, before)
		}
		before = java.worker
		ctx, cancel := context.WithTimeout(t.Context(), figure(time.Second, 5*time.Second))
		java.issue(ctx, l)
		cancel()
		java.stop()
	}
	servers[0].stop() // and one of ours is started again: it keeps its number
	names := tr.children(tr.path("forever"))
	restarted.Store(startTogether(t, tr, 8081)[0])
	restarted.Load().awaitSnowflake(20 * time.Second)
	if now := tr.children(tr.path("forever")); !slices.Equal(now, names) {
		t.Errorf("before the restart %v, then %v", names, now)
	}
	l.await(t, l.count.Load()+figure[int64](100_000, 2_000_000))
	l.stop()
	l.check(t)
	checkJavaTree(t, tr)
}

// A server of Java Leaf is started with the address of one of ours, which stops at
// once; the others go on. Before its first upload, a second after its start, no server
// can know of it: it issues only then.
func TestJavaLeafTakesOurAddress(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	tr := newTree(t, sharedZooKeeper.get(t))
	servers := startTogether(t, tr, 8081, 8082)
	for _, s := range servers {
		s.awaitSnowflake(20 * time.Second)
	}
	l := startTakes(t, 4, 2000, func(c int) *server { return servers[c%2] })
	l.await(t, 50_000)
	ours := servers[0].worker()
	java := startJavaNode(t, tr, ourIP, "8081", nil)
	if java.worker != ours {
		t.Fatalf("the Java server is worker %d, ours is %d", java.worker, ours)
	}
	start := time.Now()
	servers[0].logged(10*time.Second, "the worker ID is used by another node")
	t.Logf("noticed %v after the Java server's start, whose first upload is after 1 s", time.Since(start).Round(time.Millisecond))
	time.Sleep(1100 * time.Millisecond) // ours ran at most a second ahead of the clock
	ctx, cancel := context.WithTimeout(t.Context(), figure(time.Second, 10*time.Second))
	defer cancel()
	java.issue(ctx, l)
	if _, err := servers[0].snowflake("x"); err == nil || !strings.Contains(err.Error(), ourIP+":8081") {
		t.Errorf("it answers %v", err)
	}
	if text := servers[0].readiness(); !strings.Contains(text, "another server with the address "+ourIP+":8081") {
		t.Errorf("/readyz answers %s", text)
	}
	if _, err := servers[1].snowflake("x"); err != nil {
		t.Errorf("the other server: %v", err)
	}
	java.stop()
	l.await(t, l.count.Load()+100_000)
	l.stop()
	l.check(t)
	checkJavaTree(t, tr)
}

// After that it serves again when the Java server has been silent for 10 s, whether it
// was started again on its data directory or has run on.
func TestBackAtOurAddressAfterJavaLeaf(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{true, false} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			backAfterJavaLeaf(t, restarted)
		})
	}
}

func backAfterJavaLeaf(t *testing.T, restarted bool) {
	tr := newTree(t, sharedZooKeeper.get(t))
	args := byWorkers(t, tr.leaf(ourIP, 8081))
	s := serve(t, args...)
	s.awaitSnowflake(20 * time.Second)
	var current atomic.Pointer[server]
	current.Store(s)
	l := startTakes(t, 2, 2000, func(int) *server { return current.Load() })
	l.await(t, 20_000)
	java := startJavaNode(t, tr, ourIP, "8081", nil)
	s.logged(10*time.Second, "the worker ID is used by another node")
	time.Sleep(1100 * time.Millisecond) // ours ran at most a second ahead of the clock
	ctx, cancel := context.WithTimeout(t.Context(), figure(5*time.Second, 20*time.Second))
	defer cancel()
	java.issue(ctx, l)
	java.stop()
	start := time.Now()
	if restarted {
		s.stop()
		s = serve(t, args...)
		current.Store(s)
	}
	s.awaitSnowflake(30 * time.Second)
	t.Logf("serving again %v after the Java server's end", time.Since(start).Round(time.Millisecond))
	l.await(t, l.count.Load()+100_000)
	l.stop()
	l.check(t)
	checkJavaTree(t, tr)
	log := s.output()
	if strings.Contains(log, "context deadline exceeded") {
		t.Errorf("a wait is logged as a failure:\n%s", log)
	}
	if said := strings.Count(log, "waiting for 10s without a write, until"); restarted && said != 1 {
		t.Errorf("it says %d times what it waits for:\n%s", said, log)
	}
}

// Children that no Java server could read do not disturb ours.
func TestUnreadableChildren(t *testing.T) {
	t.Parallel()
	tr := newTree(t, sharedZooKeeper.get(t))
	for _, path := range []string{tr.chroot + "/snowflake", tr.path(), tr.path("forever"), tr.path("forever", "meta"),
		tr.path("forever", "my-host:1-0000000007"), tr.path("forever", ourIP+":8081-x"), tr.path("forever", "192.0.2.8:1-99999999999")} {
		tr.make(path)
	}
	before := tr.children(tr.path("forever"))
	s := startTogether(t, tr, 8081)[0]
	s.awaitSnowflake(20 * time.Second)
	for _, name := range before {
		if !slices.Contains(tr.children(tr.path("forever")), name) {
			t.Errorf("%s is gone", name)
		}
	}
	s.stop()
}

// The time in our node is an hour ahead, as after a Java server with a wrong clock. Java Leaf notices
// that, and starts all the same.
func TestTimeOfOurNodeAhead(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	tr := newTree(t, sharedZooKeeper.get(t))
	for _, path := range []string{tr.chroot + "/snowflake", tr.path(), tr.path("forever")} {
		tr.make(path)
	}
	node := tr.path("forever", ourIP+":8081-0000000003")
	tr.make(node)
	ahead := fmt.Sprintf(`{"ip":"%s","port":"8081","timestamp":%d}`, ourIP, time.Now().Add(time.Hour).UnixMilli())
	if _, err := tr.conn.Set(node, []byte(ahead), -1); err != nil {
		t.Fatal(err)
	}
	s := startTogether(t, tr, 8081)[0]
	until(t, 25*time.Second, "refusing", func() error {
		_, err := s.snowflake("x")
		if err == nil {
			t.Fatal("it issues IDs")
		}
		if !strings.Contains(err.Error(), "ahead of this machine's clock") {
			return err
		}
		return nil
	})
	if got := tr.read(node); got != ahead {
		t.Errorf("it wrote %s", got)
	}
}

// A leaf.properties of Java Leaf is all that it takes: the tree is Java's.
func TestLeafPropertiesWithZooKeeper(t *testing.T) {
	t.Parallel()
	tr := newTree(t, sharedZooKeeper.get(t))
	file := config(t, "leaf.properties", fmt.Sprintf("leaf.name=%s\nleaf.segment.enable=false\nleaf.snowflake.enable=true\n"+
		"leaf.snowflake.zk.address=%s%s\nleaf.snowflake.port=8088\n", leafName, tr.addr, tr.chroot))
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, "--config", file, "--data", data)
	first := workerOf(s.awaitSnowflake(20 * time.Second))
	if first == 0 {
		t.Error("worker 0 is in use")
	}
	checkJavaTree(t, tr)
	names := tr.children(tr.path("forever"))
	if len(names) != 1 || !strings.Contains(names[0], fmt.Sprintf(":8088-%010d", first)) {
		t.Fatalf("worker %d, nodes %v", first, names)
	}
	if ip, _, _ := strings.Cut(names[0], ":"); !netip.MustParseAddr(ip).Is4() {
		t.Errorf("the address is %s", ip)
	}
	if text, err := get(s.url + "/decodeSnowflakeId?snowflakeId=" + fmt.Sprint(s.awaitSnowflake(time.Second))); err != nil ||
		!strings.Contains(text, fmt.Sprintf(`"workerId":"%d"`, first)) {
		t.Errorf("decoded %s, %v", text, err)
	}
	s.stop()
	s = serve(t, "--config", file, "--data", data)
	if again := workerOf(s.awaitSnowflake(20 * time.Second)); again != first {
		t.Errorf("worker %d after a restart, %d before", again, first)
	}
	s.stop()
	checkJavaTree(t, tr)
}
