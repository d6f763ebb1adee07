package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/hint"
)

func status(t *testing.T, n *node) cluster.Status {
	t.Helper()
	status, err := admin(t, n).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// recorded returns how far the log of a member reaches, as another one knows it.
func recorded(t *testing.T, by *node, member string) (index uint64) {
	t.Helper()
	resp, err := by.member.Client().Get(t.Context(), "/leaf-cluster/index/"+member, clientv3.WithSerializable())
	if err != nil || len(resp.Kvs) == 0 {
		return 0
	}
	if index, err = strconv.ParseUint(string(resp.Kvs[0].Value), 10, 64); err != nil {
		t.Fatal(err)
	}
	return index
}

// copyDir copies the directory of a stopped node.
func copyDir(t *testing.T, n *node) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(n.config.Dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// The counterexample of the package comment with an older copy instead of an empty disk: members 0
// and 1 acknowledge 200 while member 2 is down, and 1 comes back without that.
func TestRolledBackMemberIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	write(t, all[0], "100")
	before := status(t, all[1])
	stop(t, all[1])
	older := copyDir(t, all[1])
	all[1].mustStart(t)
	for i := range 50 {
		write(t, all[1], fmt.Sprint(100+i))
	}
	await(t, "a record of member 1 after the copy", func() error {
		if index := recorded(t, all[2], before.Member); index < before.LastEntry+20 {
			return fmt.Errorf("its log reached %d, and the record says %d", before.LastEntry, index)
		}
		return nil
	})
	write(t, all[0], "150")
	stop(t, all[2])
	write(t, all[0], "200")
	stop(t, all[0])
	stop(t, all[1])
	if err := errors.Join(os.RemoveAll(all[1].config.Dir), os.Rename(older, all[1].config.Dir)); err != nil {
		t.Fatal(err)
	}

	all[2].mustStart(t)
	if err := all[1].start(t); !errors.Is(err, hint.ErrRolledBack) {
		t.Fatalf("a member with an older copy of its directory started (%v), and a linearizable read returns %q after 200 was acknowledged", err, read(t, all[2]))
	}
	unnamed := *all[1]
	unnamed.config.Dir, unnamed.config.Peers = copyDir(t, all[1]), []string{all[1].addr} // etcd locks the log until the process ends
	if err := unnamed.start(t); !errors.Is(err, hint.ErrRolledBack) {
		t.Fatalf("a member with an older copy started, which names itself alone: %v", err)
	}
	stop(t, all[2])
	all[1].mustStart(t) // no other member answers
	other := *all[2]
	other.config.Dir = copyDir(t, all[2])
	if err := other.start(t); !errors.Is(err, hint.ErrRolledBack) {
		t.Fatalf("a member started next to one with an older copy of its directory: %v", err)
	}

	stop(t, all[1])
	all[0].mustStart(t)
	all[2].mustStart(t)
	if got := read(t, all[2]); got != "200" {
		t.Errorf("read %q, want 200", got)
	}
	remove(t, all[0], all[1])
	if err := os.RemoveAll(all[1].config.Dir); err != nil {
		t.Fatal(err)
	}
	add(t, all[0], all[1])
	all[1].mustStart(t)
	if got := read(t, all[1]); got != "200" {
		t.Errorf("the member that replaces it has %q, want 200", got)
	}
}

// A copy of the directory of a running member is refused on another machine.
func TestCopiedMemberIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	grow(t, all)
	twin := *all[1]
	twin.config.Dir, twin.config.Listen = copyDir(t, all[1]), addresses(t, 1)[0]
	if err := twin.start(t); !errors.Is(err, hint.ErrRunsElsewhere) {
		t.Errorf("a copy of a running member: %v", err)
	}
}
