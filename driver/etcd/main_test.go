package etcd_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// shared is a single member for tests that do not end it. Each test has a prefix of its own.
var shared *testserver.EtcdCluster

func TestMain(m *testing.M) {
	code := testserver.Main(m, &shared, func() (*testserver.EtcdCluster, error) { return testserver.StartEtcd(nil) })
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var prefixes atomic.Int64

// newOptions names a prefix that no other test uses.
func newOptions() *etcd.Options {
	return &etcd.Options{Prefix: fmt.Sprintf("/test/%d", prefixes.Add(1))}
}

// openDB returns a client of its own.
func openDB(t testing.TB, endpoints []string, o *etcd.Options) *kv.DB {
	t.Helper()
	db, err := etcd.Open(endpoints, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// newStore creates a store, and returns a function that opens it.
func newStore(t testing.TB, c *testserver.EtcdCluster, o *etcd.Options, tags ...segment.Tag) func(testing.TB) *kv.Store {
	t.Helper()
	if err := openDB(t, c.Endpoints(), o).Init(t.Context(), tags); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) *kv.Store { return open(t, c.Endpoints(), o) }
}

func open(t testing.TB, endpoints []string, o *etcd.Options) *kv.Store {
	t.Helper()
	return openDB(t, endpoints, o).Store()
}

func newRegistry(t testing.TB, c *testserver.EtcdCluster, o *etcd.Options) func(testing.TB) *kv.Registry {
	t.Helper()
	if err := openDB(t, c.Endpoints(), o).InitRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) *kv.Registry { return openRegistry(t, c.Endpoints(), o) }
}

func openRegistry(t testing.TB, endpoints []string, o *etcd.Options) *kv.Registry {
	t.Helper()
	return openDB(t, endpoints, o).Registry()
}

// connect returns a client of the library.
func connect(t testing.TB, endpoints []string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func put(t testing.TB, endpoints []string, key, text string) {
	t.Helper()
	if _, err := connect(t, endpoints).Put(t.Context(), key, text); err != nil {
		t.Fatal(err)
	}
}

// within returns a context that ends with the test, or sooner.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 1000}

// many is how many cells are listed: all that there can be in the lab, else some.
var many = map[bool]int{true: 524_288, false: 1024}[os.Getenv("LEAF_LAB") != ""]
