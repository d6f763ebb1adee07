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
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// shared is the single member of the tests that do not end it, each of which has a
// prefix.
var shared *testserver.EtcdCluster

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if shared, err = testserver.StartEtcd(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	code := m.Run()
	if err := goleak.Find(goleak.IgnoreCurrent()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var prefixes atomic.Int64

// newOptions names a prefix that nobody else uses.
func newOptions() *etcd.Options {
	return &etcd.Options{Prefix: fmt.Sprintf("/test/%d", prefixes.Add(1))}
}

// newStore creates a store, and returns a function that opens it.
func newStore(t testing.TB, c *testserver.EtcdCluster, o *etcd.Options, tags ...segment.Tag) func(testing.TB) *etcd.Store {
	t.Helper()
	if err := etcd.Init(t.Context(), c.Endpoints(), o, tags); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) *etcd.Store { return open(t, c.Endpoints(), o) }
}

func open(t testing.TB, endpoints []string, o *etcd.Options) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(endpoints, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newRegistry(t testing.TB, c *testserver.EtcdCluster, o *etcd.Options) func(testing.TB) *etcd.Registry {
	t.Helper()
	if err := etcd.InitRegistry(t.Context(), c.Endpoints(), o); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) *etcd.Registry { return openRegistry(t, c.Endpoints(), o) }
}

func openRegistry(t testing.TB, endpoints []string, o *etcd.Options) *etcd.Registry {
	t.Helper()
	r, err := etcd.OpenRegistry(endpoints, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// connect returns a client that is the library's own.
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

var _ worker.Registry = (*etcd.Registry)(nil)
