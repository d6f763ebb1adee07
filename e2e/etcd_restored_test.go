package e2e

import (
	"fmt"
	"net/url"
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
	store := etcdBackedUp(t)
	initWorkers(t, store.url)
	file := config(t, "leaf.yaml", onlySnowflake+"snowflake:\n  layout: two\n  layouts:\n"+
		"    two: {epoch: 2026-01-01T00:00:00Z, tick: 1ms, time: 41, worker: 1, sequence: 12}\n")
	start := func(machine, workers string) *server {
		args := serveArgs([]string{"--config", file, "--data", t.TempDir(), "--workers", workers})
		return serveBy(t, slices.Concat([]string{"env", "LEAF_ID_SPACE=" + idSpace(t) + machine}, program, args)...)
	}
	start("a", store.url).awaitSnowflake(20 * time.Second)
	store.backup(t)

	u, err := url.Parse(store.url)
	if err != nil {
		t.Fatal(err)
	}
	away := startProxy(t, u.Host, 0)
	u.Host = away.addr
	lost := start("b", u.String())
	lost.awaitSnowflake(20 * time.Second)
	waiting := start("c", store.url)
	until(t, 20*time.Second, "told", func() error {
		_, err := waiting.snowflake("x")
		if err == nil || !strings.Contains(err.Error(), "all 2 worker IDs are in use") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})

	l := startTakes(t, 2, 200, func(client int) *server { return []*server{lost, waiting}[client] })
	away.cut()
	store.restore(t)
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
