package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/hint"
)

// A server that finds no cluster, or one that does not know it, leaves nothing that has Create refuse.
func TestJoinWithoutClusterLeavesNothing(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	early := all[1]
	for _, running := range []bool{false, true} {
		if running {
			all[0].mustStart(t)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := cluster.Join(ctx, early.config)
		cancel()
		if running != errors.Is(err, hint.ErrNotAdded) || err == nil {
			t.Errorf("join of a server that was not added, with a running cluster: %v: %v", running, err)
		}
		if _, err := os.Lstat(early.config.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory exists: %v", err)
		}
	}
	create(t, early)
	alone := all[2].config
	alone.Peers = []string{alone.Address}
	if err := cluster.Join(t.Context(), alone); !errors.Is(err, hint.ErrNoMember) {
		t.Errorf("join of a server without peers: %v", err)
	}
}

// A start that could not listen does not count: the added server may start again.
func TestTakenPortCostsNoStart(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].mustStart(t)
	add(t, all[0], all[1])
	taken, err := net.Listen("tcp", all[1].addr)
	if err != nil {
		t.Fatal(err)
	}
	err = all[1].start(t)
	_ = taken.Close()
	if !errors.Is(err, cluster.ErrListen) {
		t.Errorf("a start with a taken port: %v", err)
	}
	all[1].mustStart(t)
}
