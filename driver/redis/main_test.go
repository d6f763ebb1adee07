package redis_test

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/kvtest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// shared and cluster are servers for tests that do not end them. Each test has a prefix of its own.
var (
	shared  *testserver.RedisServer
	cluster *testserver.RedisCluster
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	redis.LogTo(slog.New(slog.DiscardHandler))
	var err error
	if shared, err = testserver.StartRedis(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	if cluster, err = testserver.StartRedisCluster(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cluster.Close()
	return m.Run()
}

// parse parses a URL of the test servers, or one with a user.
func parse(t testing.TB, url string) redis.Config {
	t.Helper()
	scheme, rest, _ := strings.Cut(url, "://")
	kind, secure := strings.CutPrefix(scheme, "rediss")
	config := redis.Config{Prefix: redis.DefaultPrefix, Mode: map[string]redis.Mode{"redis+sentinel": redis.Sentinel, "redis+cluster": redis.Cluster}[scheme]}
	if secure && kind == "" {
		config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	at := strings.LastIndex(rest, "@")
	if at >= 0 {
		config.Username, config.Password, _ = strings.Cut(rest[:at], ":")
	}
	hosts, path, _ := strings.Cut(rest[at+1:], "/")
	config.Addrs = strings.Split(hosts, ",")
	if config.Mode == redis.Sentinel {
		config.Master = path
	} else if path != "" {
		if _, err := fmt.Sscan(path, &config.DB); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// fresh returns the configuration of a prefix that no other test uses.
func fresh(t testing.TB, url string) redis.Config {
	t.Helper()
	config := parse(t, url)
	config.Prefix = "test-" + worker.NewInstance().String()
	return config
}

func open(t testing.TB, config redis.Config) *kv.DB {
	t.Helper()
	db, err := redis.Open(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func openStore(t testing.TB, config redis.Config) *kv.Store { return open(t, config).Store() }

func openRegistry(t testing.TB, config redis.Config) *kv.Registry {
	return open(t, config).Registry()
}

// newStore creates a store with tags and opens it.
func newStore(t testing.TB, config redis.Config, tags ...segment.Tag) *kv.Store {
	t.Helper()
	db := open(t, config)
	if err := db.Init(t.Context(), tags); err != nil {
		t.Fatal(err)
	}
	return db.Store()
}

func newRegistry(t testing.TB, config redis.Config) *kv.Registry {
	t.Helper()
	db := open(t, config)
	if err := db.InitRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db.Registry()
}

// A doer takes commands past the driver.
type doer interface {
	Do(args ...string) (string, error)
}

func do(t testing.TB, s doer, args ...string) string {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return answer
}

// servers are those that the suites run on.
func servers() map[string]struct {
	url string
	doer
} {
	return map[string]struct {
		url string
		doer
	}{"single": {shared.URL(), shared}, "cluster": {cluster.URL(), cluster}}
}

func TestStore(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			if name != "cluster" { // the same scripts
				testserver.Long(t)
			}
			drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
				config := fresh(t, server.url)
				newStore(t, config)
				return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return kvtest.Store(open(t, config)) }}
			})
		})
	}
}

func TestRegistry(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			if name != "cluster" { // the same scripts
				testserver.Long(t)
			}
			drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
				config := fresh(t, server.url)
				newRegistry(t, config)
				return drivertest.RegistryBackend{
					Open: func(t testing.TB) worker.Registry { return kvtest.Registry(open(t, config)) },
					Corrupt: func(t testing.TB, id int64, text string) {
						do(t, server, "HSET", "{"+config.Prefix+"}:registry", fmt.Sprintf("workers/%d", id), text)
					},
				}
			})
		})
	}
}
