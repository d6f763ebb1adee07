package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
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
	failedStart(t, all)
	all[1].mustStart(t)
}

// Neither does one that could not make its log.
func TestLogThatCannotBeMadeCostsNoStart(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].mustStart(t)
	add(t, all[0], all[1])
	if err := os.Mkdir(all[1].config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(all[1].config.Dir, "member")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := all[1].start(t); err == nil || errors.Is(err, hint.ErrEmptied) {
		t.Fatalf("a start without a log: %v", err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	all[1].mustStart(t)
}

// failedStart starts the first node, and adds the second one, which cannot listen.
func failedStart(t *testing.T, all []*node) {
	t.Helper()
	all[0].mustStart(t)
	add(t, all[0], all[1])
	taken, err := net.Listen("tcp", all[1].addr)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := all[1].start(t); !errors.Is(err, cluster.ErrListen) {
		t.Fatalf("a start with a taken port: %v", err)
	}
}

// A copy of a directory from before the first start, here one with a taken port, starts no more: the
// member has had a log and a vote.
func TestCopyFromBeforeFirstStartIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	failedStart(t, all)
	older, twin := copyDir(t, all[1]), *all[1]
	twin.config.Dir, twin.config.Listen = copyDir(t, all[1]), addresses(t, 1)[0]
	all[1].mustStart(t)
	add(t, all[0], all[2])
	all[2].mustStart(t)
	awaitVotes(t, all[0])
	write(t, all[1], "200")
	if err := twin.start(t); !errors.Is(err, hint.ErrRunsElsewhere) {
		t.Errorf("a copy next to the member that runs: %v", err)
	}
	stop(t, all[1])
	if err := errors.Join(os.RemoveAll(all[1].config.Dir), os.Rename(older, all[1].config.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := all[1].start(t); !errors.Is(err, hint.ErrEmptied) && !errors.Is(err, hint.ErrRolledBack) {
		t.Errorf("a member with a copy of its directory from before its first start: %v", err)
	}
}
