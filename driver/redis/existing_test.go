package redis_test

import (
	"errors"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// Existing clients of each kind serve, and stay open.
func TestExistingClient(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	for name, client := range map[string]goredis.UniversalClient{
		"single":   goredis.NewClient(&goredis.Options{Addr: shared.Addr(), MaxRetries: -1}),
		"cluster":  goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{cluster.Nodes[0].Addr()}}), // -1 is its default
		"sentinel": goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "leaf", SentinelAddrs: []string{p.Sentinel.Addr()}, MaxRetries: -1}),
	} {
		t.Run(name, func(t *testing.T) {
			defer client.Close()
			db := open(t, redis.Config{Client: client, Prefix: "test-" + worker.NewInstance().String()})
			if err := errors.Join(db.Init(t.Context(), nil), db.Store().Create(t.Context(), order), db.InitRegistry(t.Context())); err != nil {
				t.Fatal(err)
			}
			if g := advance(t, db.Store(), 10); g.Range != (leaf.Range{Start: 1, End: 11}) || (g.Server == "") != (name == "single") {
				t.Errorf("got %+v", g)
			}
			if epoch, err := db.Registry().ServerEpoch(t.Context()); err != nil || epoch.Lossy == (name == "single") {
				t.Errorf("epoch: %+v, %v", epoch, err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if _, err := db.Store().Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
			if err := client.Ping(t.Context()).Err(); err != nil {
				t.Errorf("the client is not open any more: %v", err)
			}
		})
	}
}

// A client that sends a write again could take a range back from its next owner.
func TestExistingClientIsRefused(t *testing.T) {
	for want, client := range map[string]goredis.UniversalClient{
		"MaxRetries":    goredis.NewClient(&goredis.Options{Addr: shared.Addr()}),
		"MaxRetries ":   goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{shared.Addr()}, MaxRetries: 1}),
		"ClusterClient": goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": shared.Addr()}}),
	} {
		_, err := redis.Open(redis.Config{Client: client}, nil)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%T: %v, want one about %s", client, err, want)
		}
		client.Close()
	}
}
