package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// etcd is restored from a snapshot under running servers. Of one of them the restored registry does
// not know, and it is cut off meanwhile, so it goes on. Another one waits for a worker ID.
func TestEtcdRestoredUnderServers(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	if err := etcdRestoredUnderServers(t, leafBinary); err != nil {
		t.Error(err)
	}
}

// etcdRestoredUnderServers reports an ID that two servers issued.
func etcdRestoredUnderServers(t *testing.T, program ...string) error {
	cluster := testserver.Etcd(t, nil)
	live, saved := filepath.Join(cluster.Dir, "m0"), filepath.Join(t.TempDir(), "saved")
	initWorkers(t, cluster.URL("leaf"))
	file := config(t, "leaf.yaml", onlySnowflake+"snowflake:\n  layout: two\n  layouts:\n"+
		"    two: {epoch: 2026-01-01T00:00:00Z, tick: 1ms, time: 41, worker: 1, sequence: 12}\n")
	start := func(machine, workers string) *server {
		args := serveArgs([]string{"--config", file, "--data", t.TempDir(), "--workers", workers})
		return serveBy(t, slices.Concat([]string{"env", "LEAF_ID_SPACE=" + idSpace(t) + machine}, program, args)...)
	}
	start("a", cluster.URL("leaf")).awaitSnowflake(20 * time.Second)
	while := func(do func()) {
		if err := cluster.Kill(0); err != nil {
			t.Fatal(err)
		}
		do()
		if err := cluster.Restart(0); err != nil {
			t.Fatal(err)
		}
	}
	while(func() { replace(t, live, saved) })

	address := cluster.Endpoints()[0]
	away := startProxy(t, strings.TrimPrefix(address, "http://"), 0)
	lost := start("b", strings.Replace(cluster.URL("leaf"), strings.TrimPrefix(address, "http://"), away.addr, 1))
	lost.awaitSnowflake(20 * time.Second)
	waiting := start("c", cluster.URL("leaf"))
	until(t, 20*time.Second, "told", func() error {
		_, err := waiting.snowflake("x")
		if err == nil || !strings.Contains(err.Error(), "all 2 worker IDs are in use") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})

	l := startTakes(t, 2, 200, func(client int) *server { return []*server{lost, waiting}[client] })
	away.cut()
	while(func() { replace(t, saved, live) })
	time.Sleep(figure(15*time.Second, 25*time.Second)) // less than a claim waits
	away.mend()
	time.Sleep(5 * time.Second)
	l.stop()
	if l.count.Load() < 10_000 {
		t.Fatalf("%d IDs only; errors: %v", l.count.Load(), l.firstError())
	}
	waiting.logged(time.Second, "revision went back")
	return l.seen.Check()
}
