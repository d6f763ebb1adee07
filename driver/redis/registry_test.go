package redis_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

func claimed(id, term int64) worker.Record {
	return worker.Record{Worker: id, Instance: worker.NewInstance(), Term: term, Horizon: time.UnixMilli(1790000000000)}
}

func TestCellsHaveNoTimeToLive(t *testing.T) {
	config := fresh(t, shared.URL())
	r := newRegistry(t, config)
	one, two := claimed(7, 1), claimed(7, 2)
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, one); err != nil {
		t.Fatal(err)
	}
	key := "{" + config.Prefix + "}:registry"
	if ttl := do(t, shared, "PTTL", key); ttl != "-1" {
		t.Errorf("the cell lives for %s ms", ttl)
	}
	do(t, shared, "EXPIRE", key, "1000")
	_, loadErr := r.Load(t.Context(), 7)
	_, swapErr := r.Swap(t.Context(), one, two)
	for what, err := range map[string]error{"load": loadErr, "swap": swapErr} {
		if err == nil || !strings.Contains(err.Error(), "PERSIST") {
			t.Errorf("%s of a cell that will expire: %v", what, err)
		}
	}
	do(t, shared, "PERSIST", key)
	if _, err := r.Swap(t.Context(), one, two); err != nil {
		t.Error(err)
	}
}

func TestSwapIsSentOnce(t *testing.T) {
	p := newProxy(t, shared.Addr())
	r := newRegistry(t, fresh(t, "redis://"+p.addr))
	one, two := claimed(7, 1), claimed(7, 2)
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, one); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Load(t.Context(), 7); err != nil || !got.Equal(one) {
		t.Fatalf("got %+v, %v", got, err)
	}
	sent := p.scripts.Load()
	p.lose.Store(2) // the first is the read before it
	if _, err := r.Swap(t.Context(), one, two); err == nil || p.scripts.Load()-sent != 2 {
		t.Errorf("%d requests, error %v; want a read and one write that fails", p.scripts.Load()-sent, err)
	}
	if got, err := r.Load(t.Context(), 7); err != nil || !got.Equal(two) {
		t.Errorf("the cell holds %+v, %v", got, err)
	}
	if _, err := r.Swap(t.Context(), one, two); !errors.Is(err, worker.ErrConflict) {
		t.Errorf("sent again by the caller: %v", err)
	}
}

// A deleted field has the effect of a lost write: the holder finds its record missing and can put
// it back.
func TestDeletedCell(t *testing.T) {
	config := fresh(t, shared.URL())
	r := newRegistry(t, config)
	one := claimed(7, 1)
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, one); err != nil {
		t.Fatal(err)
	}
	key := "{" + config.Prefix + "}:registry"
	do(t, shared, "HDEL", key, "workers/7")
	if all, err := r.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("listed %v, %v", all, err)
	}
	if got, err := r.Load(t.Context(), 7); err != nil || !got.IsZero() {
		t.Errorf("loaded %+v, %v", got, err)
	}
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, one); err != nil {
		t.Error(err)
	}
	do(t, shared, "HSET", key, "workers/x", "1")
	if _, err := r.List(t.Context()); err == nil || !strings.Contains(err.Error(), "workers/x") {
		t.Errorf("with a worker x: %v", err)
	}
}

// HSCAN returns a large hash in pages, and may repeat fields.
func TestListOfMany(t *testing.T) {
	config := fresh(t, shared.URL())
	r := newRegistry(t, config)
	const workers = 5000
	args := []string{"HSET", "{" + config.Prefix + "}:registry"}
	for id := range int64(workers) {
		text, err := claimed(id, 1).MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "workers/"+strconv.FormatInt(id, 10), string(text))
	}
	do(t, shared, args...)
	all, err := r.List(t.Context())
	if err != nil || len(all) != workers {
		t.Fatalf("listed %d, %v", len(all), err)
	}
	for i, record := range all {
		if record.Worker != int64(i) {
			t.Fatalf("record %d is of worker %d", i, record.Worker)
		}
	}
}

func TestLossyRegistry(t *testing.T) {
	server := testserver.Redis(t, nil)
	r := newRegistry(t, parse(t, server.URL()))
	check := func(what string, r worker.LossyRegistry, want bool) {
		t.Helper()
		if got, err := r.ServerEpoch(t.Context()); err != nil || got.Lossy != want {
			t.Errorf("%s: %+v, %v; want %v", what, got, err, want)
		}
	}
	check("appendfsync always, alone", r, false)
	do(t, server, "CONFIG", "SET", "appendfsync", "everysec")
	check("appendfsync everysec", r, true)
	do(t, server, "CONFIG", "SET", "appendfsync", "always")
	do(t, server, "CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
	check("no-appendfsync-on-rewrite", r, true)
	do(t, server, "CONFIG", "SET", "no-appendfsync-on-rewrite", "no")
	check("appendfsync always again", r, false)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	check("restarted", r, false)
	do(t, server, "ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-config")
	plain := parse(t, strings.Replace(server.URL(), "redis://", "redis://u:p@", 1))
	check("settings that may not be read", openRegistry(t, plain), true)
	do(t, server, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica := testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"replicaof", "127.0.0.1 " + strconv.Itoa(server.Port)}}})
	if err := server.AwaitInfo("replication", "connected_slaves:1"); err != nil {
		t.Fatal(err)
	}
	check("with a replica", r, true)
	if err := replica.AwaitInfo("replication", "master_link_status:up"); err != nil {
		t.Fatal(err)
	}
	do(t, replica, "REPLICAOF", "NO", "ONE")
	check("a replica that was promoted", openRegistry(t, parse(t, replica.URL())), true)
	check("cluster", newRegistry(t, fresh(t, cluster.URL())), true)
}

func TestIncarnation(t *testing.T) {
	server := testserver.Redis(t, nil)
	do(t, server, "CONFIG", "SET", "appendfsync", "everysec")
	do(t, server, "CONFIG", "REWRITE")
	drivertest.TestIncarnation(t, newRegistry(t, parse(t, server.URL())), func() {
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
	})
}
