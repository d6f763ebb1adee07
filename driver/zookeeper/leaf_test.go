package zookeeper_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/zookeeper"
	"github.com/leaf-id/leaf/worker"
)

// child is the name of a node as ZooKeeper numbers it.
func child(address string, n int) string { return fmt.Sprintf("%s-%010d", address, n) }

func assign(t testing.TB, l *zookeeper.Leaf) int64 {
	t.Helper()
	id, err := settled(t, l)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// settled is Assign after all waits for silent children.
func settled(t testing.TB, l *zookeeper.Leaf) (id int64, err error) {
	t.Helper()
	eventually(t, "the node stands still, or does not", func() bool {
		id, err = l.Assign(t.Context(), 1023)
		return !waits(err)
	})
	return id, err
}

// assignOnceStopped waits until a Java server's worker ID is given to us. Its last upload may have
// come after our last look, just before it stopped: then it is refused once more.
func assignOnceStopped(t testing.TB, l *zookeeper.Leaf, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("worker ID %d is given", want), func() bool {
		id, err := settled(t, l)
		return err == nil && id == want
	})
}

// waits reports whether err names a child that must be silent for longer.
func waits(err error) bool {
	return err != nil && strings.Contains(err.Error(), "without a write, until")
}

func isTaken(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, worker.ErrTaken) {
		t.Errorf("%s: %v, want an error that wraps worker.ErrTaken", what, err)
	}
}

func TestTreeIsJavaLeafsByteForByte(t *testing.T) {
	tr := newTree(t)
	l := tr.leaf(t, nil)
	before := time.Now().UnixMilli()
	if id := assign(t, l); id != 1 {
		t.Errorf("worker ID %d, want 1", id)
	}
	if diff := slices.Compare(tr.forever(), []string{"192.0.2.2:8080-0000000001"}); diff != 0 {
		t.Fatalf("children %q", tr.forever())
	}
	node := tr.path("forever", "192.0.2.2:8080-0000000001")
	written := func() int64 {
		t.Helper()
		data, stat := tr.get(node)
		m := regexp.MustCompile(`^\{"ip":"192\.0\.2\.2","port":"8080","timestamp":([0-9]{13})\}$`).FindStringSubmatch(data)
		if m == nil || stat.EphemeralOwner != 0 {
			t.Fatalf("data %q, owner %x", data, stat.EphemeralOwner)
		}
		at, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || at < before || at > time.Now().UnixMilli() {
			t.Errorf("timestamp %d is not a time since %d", at, before)
		}
		return at
	}
	first := written()
	hold(t, l, 1)
	eventually(t, "the time is uploaded", func() bool { return written() > first })
	for _, path := range []string{"", "/snowflake", "/snowflake/" + name, "/snowflake/" + name + "/forever"} {
		if data, _ := tr.get(tr.chroot + path); data != "" {
			t.Errorf("%s holds %q, want nothing", path, data)
		}
	}
	for _, path := range []string{tr.path("forever"), node} {
		acl, _, err := tr.conn.GetACL(path)
		if err != nil || !slices.Equal(acl, zk.WorldACL(zk.PermAll)) {
			t.Errorf("%s: access list %v, %v", path, acl, err)
		}
	}
}

func TestJavaServersJoinAndRestart(t *testing.T) {
	tr := newTree(t)
	l := tr.leaf(t, nil)
	hold(t, l, assign(t, l))
	j := startJava(t, tr, "192.0.2.3", "8080")
	if j.worker != 2 {
		t.Errorf("the Java server is worker %d, want 2", j.worker)
	}
	j.stop()
	if again := startJava(t, tr, "192.0.2.3", "8080"); again.worker != 2 {
		t.Errorf("after its restart the Java server is worker %d, want 2", again.worker)
	}
	third := tr.leaf(t, port(8081))
	if id := assign(t, third); id != 3 {
		t.Errorf("worker ID %d, want 3", id)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if id := assign(t, tr.leaf(t, nil)); id != 1 {
		t.Errorf("after a restart: worker ID %d, want 1", id)
	}
}

// TestFirstStartRace: Java servers find no tree, so they keep worker 0, not the number of their
// node, while ours make it.
func TestFirstStartRace(t *testing.T) {
	for round := range 6 {
		tr := newTree(t)
		var mu sync.Mutex
		used := map[int64][]string{}
		claim := func(id int64, who string) {
			mu.Lock()
			defer mu.Unlock()
			used[id] = append(used[id], who)
		}
		looked := make(chan struct{})
		var java, ours sync.WaitGroup
		java.Go(func() {
			j, err := newJava(tr, "192.0.2.9", "8080", func() {
				close(looked)
				if round%2 == 0 {
					ours.Wait()
				}
			})
			if err != nil {
				t.Error(err)
			}
			claim(j.worker, "java")
			j.stop()
		})
		<-looked
		for n := range 2 {
			l := tr.leaf(t, port(8080+n))
			ours.Go(func() {
				id, err := l.Assign(t.Context(), 1023)
				if err != nil {
					t.Error(err)
				}
				claim(id, fmt.Sprint("ours ", n))
			})
		}
		ours.Wait()
		java.Wait()
		if len(used) != 3 || len(used[0]) != 1 || used[0][0] != "java" {
			t.Errorf("round %d: worker IDs %v, want three, of which 0 is the Java server's", round, used)
		}
	}
}

func TestOwnNodeOfWorkerZeroIsReplaced(t *testing.T) {
	tr := newTree(t)
	j := startJava(t, tr, "192.0.2.2", "8080")
	if j.worker != 0 {
		t.Fatalf("the Java server is worker %d, want 0", j.worker)
	}
	l := tr.leaf(t, nil)
	_, err := settled(t, l)
	isTaken(t, "while the Java server runs", err)
	if names := tr.forever(); len(names) != 1 {
		t.Fatalf("children %q: the running server's was touched", names)
	}
	j.stop()
	assignOnceStopped(t, l, 1)
	if names := tr.forever(); !slices.Equal(names, []string{child("192.0.2.2:8080", 1)}) {
		t.Errorf("children %q, want that of worker 1 alone", names)
	}
}

func TestHighestNodeOfTheAddressCounts(t *testing.T) {
	tr := newTree(t)
	tr.parents(tr.path("forever"))
	for n := range 6 { // ZooKeeper lists children in no order
		address, base := fmt.Sprint("192.0.2.2:", 8080+n), 10*n
		for _, k := range []int{4, 9, 7, 1} {
			tr.create(tr.path("forever", child(address, base+k)), string(javaText("192.0.2.2", strconv.Itoa(8080+n))))
		}
	}
	tr.create(tr.path("forever", child("192.0.2.22:8080", 112)), "{}")
	tr.create(tr.path("forever", child("192.0.2.2:808", 113)), "{}")
	for n := range 6 {
		l := tr.leaf(t, func(o *zookeeper.Options) {
			o.Port, o.StandStill, o.UploadEvery = 8080+n, 20*time.Millisecond, time.Millisecond
		})
		if id, want := assign(t, l), int64(10*n+9); id != want {
			t.Errorf("worker ID %d, want %d", id, want)
		}
	}
}

func TestNodesOfOthersAreNeverTaken(t *testing.T) {
	tr := newTree(t)
	startJava(t, tr, "192.0.2.3", "8080").stop()
	startJava(t, tr, "192.0.2.4", "8080").stop()
	if id := assign(t, tr.leaf(t, nil)); id != 2 {
		t.Errorf("worker ID %d, want 2", id)
	}
	if names := tr.forever(); len(names) != 3 {
		t.Errorf("children %q, want 3", names)
	}
}

func TestNodesThatDoNotParseAreLeftAlone(t *testing.T) {
	tr := newTree(t)
	tr.parents(tr.path("forever"))
	odd := []string{"meta", "my-host:1-0000000007", "192.0.2.2:8080", "192.0.2.2:8080-", "192.0.2.2:8080-x", "192.0.2.2:8080-77", "192.0.2.2:8080-00000000-1"}
	for _, name := range odd {
		tr.create(tr.path("forever", name), "")
	}
	if id := assign(t, tr.leaf(t, nil)); id != int64(len(odd)) {
		t.Errorf("worker ID %d, want %d", id, len(odd))
	}
	if names := tr.forever(); len(names) != len(odd)+1 {
		t.Errorf("children %q: some of %q are gone", names, odd)
	}
}

// TestNumberInUseInAnotherName has a tree whose nodes were copied from elsewhere, so
// that ZooKeeper gives their numbers again.
func TestNumberInUseInAnotherName(t *testing.T) {
	tr := newTree(t)
	tr.parents(tr.path("forever"))
	for n := 3; n < 6; n++ {
		tr.create(tr.path("forever", child("192.0.2.3:8080", n)), "{}")
	}
	if id := assign(t, tr.leaf(t, nil)); id != 6 {
		t.Errorf("worker ID %d, want 6: ZooKeeper begins with 3", id)
	}
	if names := tr.forever(); len(names) != 4 {
		t.Errorf("children %q, want 4", names)
	}
}

func TestWorkerIDsRunOut(t *testing.T) {
	tr := newTree(t)
	tr.parents(tr.path("forever"))
	for range 1024 {
		if _, err := tr.conn.Create(tr.path("forever", "192.0.2.3:8080-"), nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	l := tr.leaf(t, nil)
	for range 2 {
		_, err := l.Assign(t.Context(), 1023)
		if err == nil || errors.Is(err, worker.ErrTaken) || !strings.Contains(err.Error(), "run out") || !strings.Contains(err.Error(), "layout=pool") {
			t.Errorf("got %v, want that worker IDs have run out and what to do", err)
		}
	}
	if n := len(tr.forever()); n != 1024 {
		t.Errorf("%d children, want 1024: attempts leave nothing behind", n)
	}
	if _, err := l.Assign(t.Context(), 4095); err != nil {
		t.Errorf("a layout with room for it: %v", err)
	}
}

// TestLeaseOfTheProcessBefore continues a lease without asking for a worker ID, like a server that
// starts without ZooKeeper.
func TestLeaseOfTheProcessBefore(t *testing.T) {
	tr := newTree(t)
	before := tr.leaf(t, nil)
	id := assign(t, before)
	held := hold(t, before, id)
	node := tr.path("forever", child("192.0.2.2:8080", int(id)))
	eventually(t, "it uploads", func() bool { _, stat := tr.get(node); return stat.Version > 0 })
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	extend := func(l *zookeeper.Leaf) error {
		next := held
		next.Horizon = next.Horizon.Add(time.Millisecond)
		_, err := l.Swap(t.Context(), held, next)
		if err == nil {
			held = next
		}
		return err
	}
	l := tr.leaf(t, nil)
	if err := extend(l); err != nil {
		t.Fatal(err)
	}
	_, stat := tr.get(node)
	eventually(t, "it uploads again", func() bool { _, now := tr.get(node); return now.Version > stat.Version+1 })
	_, err := l.Swap(t.Context(), worker.Record{Worker: 9}, worker.Record{Worker: 9, Instance: held.Instance})
	isTaken(t, "hold another one", err)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	startJava(t, tr, "192.0.2.2", "8080").stop()
	tr.set(node, string(javaText("192.0.2.2", "8080")))
	isTaken(t, "after a Java server", extend(tr.leaf(t, nil)))
	if err := tr.conn.Delete(node, -1); err != nil {
		t.Fatal(err)
	}
	isTaken(t, "after it was deleted", extend(tr.leaf(t, nil)))
	_, err = tr.leaf(t, nil).Watch(t.Context(), id)
	isTaken(t, "watch after it was deleted", err)
	released := held
	released.Instance = worker.Instance{}
	if _, err := tr.leaf(t, nil).Swap(t.Context(), held, released); err != nil {
		t.Errorf("a release: %v", err)
	}
}

func TestUploadsNeverGoBack(t *testing.T) {
	tr := newTree(t)
	var clock atomic.Int64
	clock.Store(1_795_260_434_883)
	l := tr.leaf(t, func(o *zookeeper.Options) { o.Now = func() time.Time { return time.UnixMilli(clock.Load()) } })
	id := assign(t, l)
	hold(t, l, id)
	node := tr.path("forever", child("192.0.2.2:8080", int(id)))
	shows := func(at string) func() bool {
		return func() bool { data, _ := tr.get(node); return strings.HasSuffix(data, at+"}") }
	}
	clock.Store(1_795_260_434_983)
	eventually(t, "the clock's time is uploaded", shows("1795260434983"))
	clock.Store(1_795_260_434_000)
	eventually(t, "uploads stand still", func() bool {
		_, before := tr.get(node)
		select {
		case <-time.After(4 * upload):
		case <-t.Context().Done():
		}
		_, after := tr.get(node)
		return before.Version == after.Version
	})
	if !shows("1795260434983")() {
		t.Error("an earlier time was uploaded")
	}
	clock.Store(1_795_260_435_001)
	eventually(t, "uploads go on", shows("1795260435001"))
}

// TestClockBehindTheServerBefore is the check that Java Leaf means to make.
func TestClockBehindTheServerBefore(t *testing.T) {
	tr := newTree(t)
	startJava(t, tr, "192.0.2.3", "8080").stop()
	startJava(t, tr, "192.0.2.2", "8080").stop()
	l := tr.leaf(t, func(o *zookeeper.Options) { o.Now = func() time.Time { return time.Now().Add(-time.Hour) } })
	if _, err := settled(t, l); !errors.Is(err, leaf.ErrClock) {
		t.Errorf("got %v, want one that wraps leaf.ErrClock", err)
	}
}

func TestFirstIPv4(t *testing.T) {
	ip, err := zookeeper.FirstIPv4()
	if err != nil {
		if !strings.Contains(err.Error(), "no IPv4 address") {
			t.Fatal(err)
		}
		return
	}
	opts := (&tree{}).options()
	opts.IP = ip
	l, err := zookeeper.OpenLeaf([]string{"127.0.0.1:1"}, opts)
	if err != nil {
		t.Fatalf("%q is refused: %v", ip, err)
	}
	l.Close()
}
