package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A node is a server with a member, which may run.
type node struct {
	addr   string
	config cluster.Config
	member *cluster.Member
}

// addresses returns free ones.
func addresses(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		port, err := testserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return all
}

// nodes returns stopped servers for a cluster. The first one has a cluster by itself.
func nodes(t *testing.T, n int) (all []*node) {
	t.Helper()
	addrs := addresses(t, n)
	for _, addr := range addrs {
		c := cluster.Config{Dir: filepath.Join(t.TempDir(), "cluster"), Peers: addrs, Address: addr}
		all = append(all, &node{addr: addr, config: c})
	}
	create(t, all[0])
	return all
}

// create makes the node the only one of a new cluster, with the key "counter".
func create(t *testing.T, n *node) {
	t.Helper()
	err := cluster.Create(n.config, func(dir string) (time.Duration, error) {
		c := n.config
		c.Dir = dir
		c.TLS = cluster.TLS{} // as 'leaf cluster init' does
		m, err := cluster.Open(c)
		if err != nil {
			return 0, err
		}
		defer m.Close()
		if err := m.Start(); err != nil {
			return 0, err
		}
		if err := m.Ready(t.Context()); err != nil {
			return 0, err
		}
		_, err = m.Client().Put(t.Context(), "counter", "0")
		return 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a node after it joined or was added.
func (n *node) start(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := cluster.Join(ctx, n.config); err != nil {
		return err
	}
	m, err := cluster.Open(n.config)
	if err != nil {
		return err
	}
	if err := m.Start(); err != nil {
		return err
	}
	n.member = m
	t.Cleanup(func() { _ = m.Close() })
	return nil
}

func (n *node) mustStart(t *testing.T) {
	t.Helper()
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
}

func admin(t *testing.T, n *node) *cluster.Admin {
	t.Helper()
	a, err := cluster.NewAdmin(cluster.Config{Peers: []string{n.addr}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// add adds a server, as often as a slow disk takes.
func add(t *testing.T, by, n *node) {
	t.Helper()
	await(t, "add a server", func() error {
		_, err := admin(t, by).Add(t.Context(), n.addr)
		return err
	})
}

// remove removes a server likewise. A call whose answer was late may have done it.
func remove(t *testing.T, by, n *node) {
	t.Helper()
	await(t, "remove a server", func() error {
		status, err := admin(t, by).Status(t.Context())
		if err == nil && slices.ContainsFunc(status.Members, func(m cluster.MemberInfo) bool { return m.Address == n.addr }) {
			err = admin(t, by).Remove(t.Context(), n.addr)
		}
		return err
	})
}

// grow adds and starts the other nodes, and waits until all have a vote.
func grow(t *testing.T, all []*node) {
	t.Helper()
	all[0].mustStart(t)
	for _, n := range all[1:] {
		add(t, all[0], n)
		n.mustStart(t)
	}
	awaitVotes(t, all[0])
}

func awaitVotes(t *testing.T, by *node) {
	t.Helper()
	await(t, "votes of all members", func() error {
		status, err := admin(t, by).Status(t.Context())
		for _, m := range status.Members {
			if m.Learner {
				return fmt.Errorf("%s is a learner", m.Address)
			}
		}
		return err
	})
}

// await repeats try until it succeeds.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.After(3 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// write writes the counter, as often as an election takes.
func write(t *testing.T, n *node, value string) {
	t.Helper()
	await(t, "write "+value, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := n.member.Client().Put(ctx, "counter", value)
		return err
	})
}

func read(t *testing.T, n *node) (value string) {
	t.Helper()
	await(t, "read", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		resp, err := n.member.Client().Get(ctx, "counter")
		if err == nil {
			value = string(resp.Kvs[0].Value)
		}
		return err
	})
	return value
}

func stop(t *testing.T, n *node) {
	t.Helper()
	if err := n.member.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	write(t, all[2], "7")
	for _, n := range all {
		if got := read(t, n); got != "7" {
			t.Errorf("%s has %q, want 7", n.addr, got)
		}
	}
	stop(t, all[0])
	write(t, all[1], "8")
	if got := read(t, all[2]); got != "8" {
		t.Errorf("after the loss of a member: %q, want 8", got)
	}
	all[0].mustStart(t)
	if got := read(t, all[0]); got != "8" {
		t.Errorf("the member that is back has %q, want 8", got)
	}
}

// An operator adds a server as soon as the port of the first one is open, before it has a leader.
func TestAddDuringElection(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	started := make(chan error, 1)
	go func() { started <- all[0].start(t) }()
	await(t, "the open port", func() error {
		_, err := admin(t, all[0]).Add(t.Context(), all[1].addr)
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
			return nil
		}
		return err
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// The counterexample of the package comment, up to the start of the emptied member.
func TestEmptiedMemberIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	stop(t, all[2])
	write(t, all[0], "200")
	stop(t, all[1])
	all[2].mustStart(t)
	for _, lost := range []string{"member", ""} { // the log, or the whole directory
		if err := os.RemoveAll(filepath.Join(all[1].config.Dir, lost)); err != nil {
			t.Fatal(err)
		}
		if err := all[1].start(t); !errors.Is(err, hint.ErrEmptied) {
			t.Fatalf("without %q an emptied member started: %v", lost, err)
		}
	}
	if got := read(t, all[0]); got != "200" {
		t.Errorf("read %q, want 200", got)
	}
}

func TestUnaddedServerIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].mustStart(t)
	if err := all[1].start(t); !errors.Is(err, hint.ErrNotAdded) {
		t.Errorf("a server that nobody added: %v", err)
	}
	add(t, all[0], all[1])
	all[1].mustStart(t)
}

func TestRemovedMemberIsRefused(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	stop(t, all[2])
	remove(t, all[0], all[2])
	if err := all[2].start(t); !errors.Is(err, hint.ErrRemoved) {
		t.Errorf("a removed member: %v", err)
	}
	add(t, all[0], all[2])
	if err := all[2].start(t); !errors.Is(err, hint.ErrRemoved) {
		t.Errorf("a removed member whose address was added again: %v", err)
	}
	if err := os.RemoveAll(all[2].config.Dir); err != nil {
		t.Fatal(err)
	}
	all[2].mustStart(t)
}

func TestOtherClusterIsRefused(t *testing.T) {
	t.Parallel()
	all, others := nodes(t, 1), nodes(t, 1)
	all[0].mustStart(t)
	others[0].config.Peers = []string{all[0].addr}
	if err := others[0].start(t); !errors.Is(err, hint.ErrOtherCluster) {
		t.Errorf("a member whose peers are of another cluster: %v", err)
	}
	if err := cluster.Create(all[0].config, nil); !errors.Is(err, hint.ErrHasMember) {
		t.Errorf("a second cluster in one directory: %v", err)
	}
}

// A change of the members that would leave too few running ones is refused.
func TestQuorumIsKept(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	stop(t, all[2])
	if err := admin(t, all[0]).Remove(t.Context(), all[1].addr); !errors.Is(err, hint.ErrQuorum) {
		t.Fatalf("remove one of two that run: %v", err)
	}
	remove(t, all[0], all[2])
	write(t, all[0], "9")
	remove(t, all[0], all[1])
	if err := admin(t, all[0]).Remove(t.Context(), all[0].addr); !errors.Is(err, hint.ErrQuorum) {
		t.Errorf("remove the only member: %v", err)
	}
	write(t, all[0], "10")
}

func TestMutualTLS(t *testing.T) {
	t.Parallel()
	all := nodes(t, 1)
	outside := all[0].config
	outside.Dir, outside.Address = filepath.Join(t.TempDir(), "c"), "h1.example:2380"
	if err := cluster.Create(outside, nil); !errors.Is(err, hint.ErrPeerTLS) {
		t.Errorf("a member that other machines reach, without certificates: %v", err)
	}
	certs := t.TempDir()
	if err := cluster.Certify(certs, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(certs, name) }
	for i, addr := range addresses(t, 2) {
		c := cluster.Config{Dir: filepath.Join(t.TempDir(), "cluster"), Address: addr,
			TLS: cluster.TLS{CA: file("ca.pem"), Cert: file("127.0.0.1.pem"), Key: file("127.0.0.1-key.pem")}}
		if all = append(all[:i], &node{addr: addr, config: c}); i > 0 {
			all[1].config.Peers = []string{all[0].addr}
		}
	}
	create(t, all[0])
	all[0].mustStart(t)
	if _, err := admin(t, all[0]).Status(t.Context()); err == nil {
		t.Error("a caller without a certificate was served")
	}
	a, err := cluster.NewAdmin(cluster.Config{Peers: []string{all[0].addr}, TLS: all[0].config.TLS})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Add(t.Context(), all[1].addr); err != nil {
		t.Fatal(err)
	}
	all[1].mustStart(t)
	write(t, all[1], "5")
	if err := cluster.Certify(certs, []string{"127.0.0.1"}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a certificate was overwritten: %v", err)
	}
}

// A leader of which a part has ended hands over, though its heartbeats go on.
func TestFailedLeaderHandsOver(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	awaitVotes(t, all[0])
	leader := slices.IndexFunc(all, func(n *node) bool { return n.member.Stats().IsLeader })
	if leader < 0 {
		t.Fatal("no leader")
	}
	all[leader].member.Fail(errors.New("the disk is full"))
	other := all[(leader+1)%3]
	await(t, "another leader", func() error {
		known, err := admin(t, other).Status(t.Context())
		for _, m := range known.Members {
			if m.Leader && m.Address != all[leader].addr {
				return nil
			}
		}
		return errors.Join(errors.New("the failed member leads"), err)
	})
	write(t, other, "12")
}

// A call without a leader fails at once, so that the next one is not late.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	grow(t, all)
	stop(t, all[1])
	stop(t, all[2])
	await(t, "the loss of the leader", func() error {
		_, err := all[0].member.Client().Get(t.Context(), "counter", clientv3.WithSerializable())
		if err == nil {
			return errors.New("a member without the others serves")
		}
		return nil
	})
	start := time.Now()
	if _, err := all[0].member.Client().Put(t.Context(), "counter", "1"); err == nil || time.Since(start) > 500*time.Millisecond {
		t.Errorf("a write without a leader: %v after %v", err, time.Since(start))
	}
	all[1].mustStart(t)
	write(t, all[0], "11")
}
