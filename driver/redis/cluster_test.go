package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// slotOf is where the keys of a store are.
type slotOf struct {
	number          string
	from, to, third *testserver.RedisServer // the node with the keys, and the other two
}

func findSlot(t *testing.T, c *testserver.RedisCluster, config redis.Config) slotOf {
	t.Helper()
	s := slotOf{number: do(t, c, "CLUSTER", "KEYSLOT", "{"+config.Prefix+"}:store")}
	for _, node := range c.Nodes {
		if n := do(t, node, "CLUSTER", "COUNTKEYSINSLOT", s.number); n != "0" {
			s.from = node
		} else {
			s.to, s.third = node, s.to
		}
	}
	return s
}

// move moves the slot as redis-cli --cluster reshard does, and calls half-way when the keys
// have moved and the slot has not.
func (s slotOf) move(t *testing.T, halfway func()) {
	t.Helper()
	fromID, toID := do(t, s.from, "CLUSTER", "MYID"), do(t, s.to, "CLUSTER", "MYID")
	do(t, s.to, "CLUSTER", "SETSLOT", s.number, "IMPORTING", fromID)
	do(t, s.from, "CLUSTER", "SETSLOT", s.number, "MIGRATING", toID)
	for {
		keys := do(t, s.from, "CLUSTER", "GETKEYSINSLOT", s.number, "100")
		if keys == "" {
			break
		}
		for key := range strings.SplitSeq(keys, "\n") {
			do(t, s.from, "MIGRATE", "127.0.0.1", strings.TrimPrefix(s.to.Addr(), "127.0.0.1:"), key, "0", "5000")
		}
	}
	halfway()
	for _, node := range []*testserver.RedisServer{s.to, s.from, s.third} {
		do(t, node, "CLUSTER", "SETSLOT", s.number, "NODE", toID)
	}
}

// TestSlotMoves moves the keys to another node under a running store. The move loses nothing and
// must not trip the guard: another process, which sees the new node only, continues under the same
// name.
func TestSlotMoves(t *testing.T) {
	config := fresh(t, cluster.URL())
	s := newStore(t, config, order)
	before := advance(t, s, 10)
	findSlot(t, cluster, config).move(t, func() {
		if _, err := s.Advance(t.Context(), "order", 10); err == nil || !strings.Contains(err.Error(), "is moving the keys") {
			t.Errorf("while the slot moves: %v", err)
		}
	})
	for i, store := range []*kv.Store{s, openStore(t, config), s} {
		after := advance(t, store, 10)
		if after.Range.Start != before.Range.End+10*int64(i) || after.Server != before.Server || after.Server == "" {
			t.Errorf("%d: %+v follows %+v", i, after, before)
		}
	}
}

// The first client that sees the keys on another server decides. A client that had not seen
// them before assumes the worst.
func TestSlotMovesUnseen(t *testing.T) {
	config := fresh(t, cluster.URL())
	before := advance(t, newStore(t, config, order), 10)
	findSlot(t, cluster, config).move(t, func() {})
	first, second := advance(t, openStore(t, config), 10), advance(t, openStore(t, config), 10)
	if first.Server == before.Server || second.Server != first.Server {
		t.Errorf("servers %s, then %s and %s", before.Server, first.Server, second.Server)
	}
}

// TestSlotMovesUnderLoad moves the keys back and forth under buffers that ask all the time.
func TestSlotMovesUnderLoad(t *testing.T) {
	config := fresh(t, cluster.URL())
	newStore(t, config, order)
	var issued drivertest.Ranges
	nodes := make([]node, 3)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range nodes {
		nodes[i] = node{segment.NewBuffer(openStore(t, config), "order", &segment.Options{MaxStock: 4000, Wait: 10 * time.Second}), &issued}
		nodes[i].take(t, 100) // has seen where the keys are
		wg.Go(func() {
			for ctx.Err() == nil {
				got, err := nodes[i].buffer.Take(ctx, nil, 100)
				for _, r := range got {
					issued.Add(r)
				}
				if err != nil && ctx.Err() == nil && !errors.Is(err, leaf.ErrExhausted) {
					t.Error(err)
					return
				}
			}
		})
	}
	slot := findSlot(t, cluster, config)
	for range 4 {
		asked := nodes[0].buffer.Stats().Refills
		for deadline := time.Now().Add(20 * time.Second); nodes[0].buffer.Stats().Refills < asked+3; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no buffer asks")
			}
		}
		slot.move(t, func() {})
		slot.from, slot.to = slot.to, slot.from
	}
	stop()
	wg.Wait()
	for i, n := range nodes {
		if r := n.buffer.Stats().Regressions; r != 0 {
			t.Errorf("node %d: the guard tripped %d times", i, r)
		}
	}
	if err := issued.Check(); err != nil {
		t.Error(err)
	}
	if tag, err := maxID(t, config); err != nil || tag > 10_000_000 {
		t.Errorf("the counter stands at %d, %v: IDs were skipped", tag, err)
	}
}

func maxID(t *testing.T, config redis.Config) (int64, error) {
	for tag, err := range openStore(t, config).Tags(t.Context()) {
		return tag.MaxID, err
	}
	return 0, errors.New("there is no tag")
}

// A replica takes over without the last writes, and the guard trips. It also trips if the keys then
// move to a lossless node before a server looks.
func TestClusterFailOverLosesWrites(t *testing.T) {
	testserver.Long(t)
	for name, moveOn := range map[string]bool{"stays": false, "moves on": true} {
		t.Run(name, func(t *testing.T) {
			c := testserver.RedisClusterOf3(t)
			config := parse(t, c.URL())
			newStore(t, config, order)
			slot := findSlot(t, c, config)
			replica := c.AddReplica(t, slot.from)
			var issued drivertest.Ranges
			newNode := func() node {
				return node{segment.NewBuffer(openStore(t, config), "order", &segment.Options{Policy: segment.Leaf}), &issued}
			}
			knew, lost := newNode(), newNode()
			knew.take(t, 100)
			knew.rest(t)
			caughtUpWith(t, slot.from, replica)
			do(t, replica, "CONFIG", "SET", "masteruser", "nobody")
			do(t, replica, "CONFIG", "SET", "masterauth", "wrong")
			do(t, replica, "CLIENT", "KILL", "TYPE", "master")
			if err := slot.from.AwaitInfo("replication", "connected_slaves:0"); err != nil {
				t.Fatal(err)
			}
			lost.take(t, 10_000)
			lost.rest(t)
			if err := slot.from.Kill(); err != nil {
				t.Fatal(err)
			}
			do(t, replica, "CLUSTER", "FAILOVER", "TAKEOVER")
			if err := replica.AwaitInfo("replication", "role:master"); err != nil {
				t.Fatal(err)
			}
			if moveOn {
				slot.from = replica
				slot.move(t, func() {})
			}
			knew.wantNoticed(t)
			lost.wantNoticed(t)
			if err := issued.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClusterNodeRestarts(t *testing.T) {
	c := testserver.RedisClusterOf3(t)
	s := newStore(t, parse(t, c.URL()), order)
	before := advance(t, s, 10)
	for _, node := range c.Nodes {
		if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Advance(t.Context(), "order", 10); err == nil || !strings.Contains(err.Error(), "no server answers") {
		t.Errorf("with all nodes gone: %v", err)
	}
	for _, node := range c.Nodes {
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		after, err := s.Advance(t.Context(), "order", 10)
		if err == nil {
			if after.Range.Start != before.Range.End || after.Server == before.Server {
				t.Errorf("%+v follows %+v", after, before)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
