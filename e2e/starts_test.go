package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A server starts before its registry of worker IDs exists. It claims a worker ID once the registry
// exists, without a restart.
func TestRegistryIsCreatedLater(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	postgres := testserver.Postgres(t, nil)
	fresh := newTree(t, sharedZooKeeper.get(t))
	for name, url := range map[string]string{
		"sqlite":    "sqlite:" + filepath.Join(t.TempDir(), "workers.db"),
		"mysql":     mariadb.URL(mariadb.NewDatabase(t)) + "?claim_delay=0s",
		"postgres":  postgres.URL(postgres.NewDatabase(t)) + "&claim_delay=0s",
		"etcd":      testserver.Etcd(t, nil).URL("leaf"),
		"redis":     testserver.Redis(t, nil).URL() + "?claim_delay=0s",
		"zookeeper": fmt.Sprintf("zookeeper://%s%s", fresh.addr, fresh.chroot),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, byWorkers(t, url)...)
			s.logged(10*time.Second, "leaf init --workers")
			leafCommand(t, "init", "--workers", url)
			s.awaitSnowflake(15 * time.Second)
			s.stop()
		})
	}
}

// The same with the store's own database, which --workers does not name: the server is ready
// meanwhile, since it has all that its configuration requires.
func TestStoreIsGivenWorkersLater(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	url := mariadb.URL(mariadb.NewDatabase(t))
	leafCommand(t, "init", "--store", url)
	leafCommand(t, "tag", "create", sampleTag, "--step", "10", "--store", url)
	s := serve(t, "--store", url, "--data", filepath.Join(t.TempDir(), "data"))
	s.next(sampleTag)
	s.logged(10*time.Second, "leaf init --workers")
	until(t, 10*time.Second, "ready", func() error {
		if text := s.readiness(); !strings.HasPrefix(text, "ok\n") {
			return fmt.Errorf("/readyz answers %s", text)
		}
		return nil
	})
	leafCommand(t, "init", "--workers", url)
	s.awaitSnowflake(15 * time.Second)
	s.stop()
}

// The part of a ZooKeeper that the URL names, which no server creates by itself, is made
// while a server in Java Leaf's tree waits for it.
func TestChrootIsCreatedLater(t *testing.T) {
	t.Parallel()
	tr := newTree(t, sharedZooKeeper.get(t))
	below := *tr
	below.chroot += "/below"
	s := serve(t, byWorkers(t, below.leaf(ourIP, 8081))...)
	s.logged(10*time.Second, "zookeeper has no "+below.chroot)
	if _, err := tr.conn.Create(below.chroot, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	s.awaitSnowflake(15 * time.Second)
	s.stop()
}

// The machine hides its boot ID from the server, as systemd's ProcSubset=pid does: a crash costs the
// worker ID, until its lease has run out.
func TestHiddenBootID(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Fatalf("this test needs a mount namespace: run it as root, in a container with CAP_SYS_ADMIN: %v\n%s", err, out)
	}
	url := newRegistry(t)
	args := serveArgs(byWorkers(t, url))
	start := func() *server {
		return serveBy(t, append([]string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs none /proc/sys && exec "$@"`, "sh", leafBinary}, args...)...)
	}
	var current atomic.Pointer[server]
	current.Store(start())
	l := startTakes(t, 2, 2000, func(int) *server { return current.Load() })
	l.await(t, 20_000)
	first := current.Load().worker()
	current.Load().kill()
	current.Store(start())
	if second := workerOf(current.Load().awaitSnowflake(10 * time.Second)); second == first {
		t.Errorf("worker %d again after a crash", second)
	}
	l.await(t, l.count.Load()+20_000)
	current.Load().stop()
	current.Store(start()) // after a stop in order nothing needs to be proven
	current.Load().awaitSnowflake(10 * time.Second)
	l.await(t, l.count.Load()+20_000)
	l.stop()
	l.check(t)
	if log := current.Load().output(); strings.Count(log, "boot_id") != 1 {
		t.Errorf("it does not say once what is missing:\n%s", log)
	}
}
