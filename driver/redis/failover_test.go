package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// caughtUpWith waits until a replica has every write.
func caughtUpWith(t *testing.T, primary, replica *testserver.RedisServer) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		has, wants := offset(t, replica), offset(t, primary)
		if has == wants {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica stands at %s, the primary at %s", has, wants)
		}
	}
}

// offset is the replication offset of a server.
func offset(t *testing.T, s *testserver.RedisServer) string {
	t.Helper()
	_, text, _ := strings.Cut(do(t, s, "INFO", "replication"), "master_repl_offset:")
	n, _, _ := strings.Cut(text, "\r")
	return n
}

// A node is a buffer with its issued IDs.
type node struct {
	buffer *segment.Buffer
	issued *drivertest.Ranges
}

func (n node) take(t *testing.T, count int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); count > 0; {
		got, err := n.buffer.Take(t.Context(), nil, min(count, 500))
		for _, r := range got {
			n.issued.Add(r)
			count -= int(r.Len())
		}
		if err != nil && (!errors.Is(err, leaf.ErrExhausted) || time.Now().After(deadline)) {
			t.Fatal(err)
		}
	}
}

// wantNoticed takes IDs until the buffer must have noticed that the server is another one.
func (n node) wantNoticed(t *testing.T) {
	t.Helper()
	for had := n.buffer.Stats().Refills; n.buffer.Stats().Refills < had+2; {
		n.take(t, 2000)
	}
	if n.buffer.Stats().Regressions == 0 {
		t.Error("a node did not notice that another server had taken over")
	}
}

// rest waits until the buffer has no call to the store under way.
func (n node) rest(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); n.buffer.Stats().Refilling; {
		if time.Now().After(deadline) {
			t.Fatal("the buffer goes on refilling")
		}
	}
}

// TestFailOverWithLostWrites makes a replica take over without the last writes. The node "knew"
// lost no grant: only the change of servers warns it.
func TestFailOverWithLostWrites(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	config := parse(t, p.URL())
	newStore(t, config, order)
	var issued drivertest.Ranges
	newNode := func() node {
		b := segment.NewBuffer(openStore(t, config), "order", &segment.Options{Policy: segment.Leaf})
		return node{b, &issued}
	}
	knew, lost := newNode(), newNode()
	knew.take(t, 100)
	knew.rest(t)
	must(t, p.Break())
	lost.take(t, 10_000)
	lost.rest(t)
	must(t, p.FailOver())
	knew.wantNoticed(t)
	lost.wantNoticed(t)
	if err := issued.Check(); err != nil {
		t.Error(err)
	}
}

func TestServerChangesWithFailOver(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	config := parse(t, p.URL())
	s := newStore(t, config, order)
	r := newRegistry(t, config)
	if epoch, err := r.ServerEpoch(t.Context()); err != nil || !epoch.Lossy {
		t.Errorf("epoch: %+v, %v", epoch, err)
	}
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, claimed(7, 1)); err != nil {
		t.Fatal(err)
	}
	before, same := advance(t, s, 10), advance(t, s, 10)
	if before.Server == "" || same.Server != before.Server {
		t.Errorf("servers %q, %q", before.Server, same.Server)
	}
	must(t, p.CatchUp())
	must(t, p.FailOver())
	var after segment.Grant
	for deadline := time.Now().Add(20 * time.Second); ; {
		var err error
		if after, err = s.Advance(t.Context(), "order", 10); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if after.Server == "" || after.Server == before.Server {
		t.Errorf("server %q before, %q after the fail-over", before.Server, after.Server)
	}
	if _, err := r.Load(t.Context(), 7); err != nil {
		t.Error(err)
	}
}

// TestSwitchOver changes the roles of two servers that both go on.
func TestSwitchOver(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	s := newStore(t, parse(t, p.URL()), order)
	before := advance(t, s, 10)
	must(t, p.CatchUp())
	must(t, p.SwitchOver())
	if err := p.Primary.AwaitInfo("replication", "role:slave", "master_link_status:up"); err != nil {
		t.Fatal(err)
	}
	after := advance(t, s, 10)
	if after.Range.Start < before.Range.End || after.Server == before.Server {
		t.Errorf("%+v follows %+v", after, before)
	}
}

func TestReplicaUnderAnOpenStore(t *testing.T) {
	server := testserver.Redis(t, nil)
	s := newStore(t, parse(t, server.URL()), order)
	advance(t, s, 10)
	do(t, server, "REPLICAOF", "127.0.0.1", "1")
	if _, err := s.Advance(t.Context(), "order", 10); err == nil || !strings.Contains(err.Error(), "name the primary") {
		t.Errorf("a server that has become a replica: %v", err)
	}
}

func TestWait(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	config := parse(t, p.URL())
	config.Wait, config.WaitTimeout = 1, 3*time.Second
	s, r := newStore(t, config, order), newRegistry(t, config)
	advance(t, s, 10)
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, claimed(7, 1)); err != nil {
		t.Fatal(err)
	}
	if err := p.Replica.Pause(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Advance(t.Context(), "order", 10)
	if err == nil || !strings.Contains(err.Error(), "not confirmed: check the replicas") {
		t.Errorf("with the replica paused: %v", err)
	}
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 8}, claimed(8, 1)); err == nil || errors.Is(err, worker.ErrConflict) {
		t.Errorf("with the replica paused: swap: %v", err)
	}
	if err := p.Replica.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := advance(t, s, 10).Range; got.Start != 21 {
		t.Errorf("got %v, want it behind the range that was lost", got)
	}
}
