package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/testserver"
)

// TestSlotMoves moves the keys to another node under a store that knows where they were.
func TestSlotMoves(t *testing.T) {
	config := fresh(t, cluster.URL())
	s := newStore(t, config, order)
	before := advance(t, s, 10)
	slot := do(t, cluster, "CLUSTER", "KEYSLOT", "{"+config.Prefix+"}:tags")
	var from, to *testserver.RedisServer
	for _, node := range cluster.Nodes {
		if n := do(t, node, "CLUSTER", "COUNTKEYSINSLOT", slot); n != "0" {
			from = node
		} else {
			to = node
		}
	}
	fromID, toID := do(t, from, "CLUSTER", "MYID"), do(t, to, "CLUSTER", "MYID")
	do(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	do(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	for key := range strings.SplitSeq(do(t, from, "CLUSTER", "GETKEYSINSLOT", slot, "100"), "\n") {
		do(t, from, "MIGRATE", "127.0.0.1", strings.TrimPrefix(to.Addr(), "127.0.0.1:"), key, "0", "5000")
	}
	if _, err := s.Advance(t.Context(), "order", 10); err == nil || !strings.Contains(err.Error(), "is moving the keys") {
		t.Errorf("while the slot moves: %v", err)
	}
	for _, node := range []*testserver.RedisServer{to, from} {
		do(t, node, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
	after := advance(t, s, 10)
	if after.Range != (leaf.Range{Start: 11, End: 21}) || after.Server == before.Server {
		t.Errorf("%+v follows %+v", after, before)
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
