package e2e

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// A lazyZooKeeper is the server of the tests that do not end it, started when the
// first of them comes.
type lazyZooKeeper struct {
	once   sync.Once
	server *testserver.ZooKeeperServer
	err    error
}

var sharedZooKeeper lazyZooKeeper

func (z *lazyZooKeeper) get(t testing.TB) *testserver.ZooKeeperServer {
	t.Helper()
	z.once.Do(func() { z.server, z.err = testserver.StartZooKeeper() })
	if z.err != nil {
		t.Fatal(z.err)
	}
	return z.server
}

func (z *lazyZooKeeper) close() {
	if z.server != nil {
		z.server.Close()
	}
}

// A tree is a part of a ZooKeeper that belongs to one test, as the test itself sees it.
type tree struct {
	t      testing.TB
	addr   string
	chroot string
	conn   *zk.Conn
}

const leafName = "lab" // leaf.name

func newTree(t testing.TB, server *testserver.ZooKeeperServer) *tree {
	t.Helper()
	tr := &tree{t: t, addr: server.Addr(), chroot: "/test-" + worker.NewInstance().String()}
	tr.connect()
	tr.make(tr.chroot)
	return tr
}

// connect begins a session of the test's own, which ends with the test.
func (tr *tree) connect() {
	tr.t.Helper()
	conn, events, err := zk.Connect([]string{tr.addr}, 10*time.Second, zk.WithLogger(silent{}), zk.WithDialer(dialPrompt))
	if err != nil {
		tr.t.Fatal(err)
	}
	go func() {
		for range events {
		}
	}()
	tr.t.Cleanup(conn.Close)
	tr.conn = conn
}

// dialPrompt makes connections on which the library waits ten seconds for a session, not a minute.
func dialPrompt(network, addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, addr, timeout)
	return promptConn{conn}, err
}

type promptConn struct{ net.Conn }

func (c promptConn) SetReadDeadline(t time.Time) error {
	if limit := time.Now().Add(10 * time.Second); t.After(limit) {
		t = limit
	}
	return c.Conn.SetReadDeadline(t)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// pool returns the worker URL of a pool, which it makes.
func (tr *tree) pool() string {
	tr.t.Helper()
	url := fmt.Sprintf("zookeeper://%s%s", tr.addr, tr.chroot)
	initWorkers(tr.t, url)
	return url
}

// leaf returns the worker URL of Java Leaf's tree for a server of that address.
func (tr *tree) leaf(ip string, port int) string {
	return fmt.Sprintf("zookeeper://%s%s?layout=leaf&name=%s&ip=%s&port=%d", tr.addr, tr.chroot, leafName, ip, port)
}

// path returns a path below /snowflake/lab.
func (tr *tree) path(elements ...string) string {
	return strings.Join(slices.Concat([]string{tr.chroot, "snowflake", leafName}, elements), "/")
}

// make makes one node without data.
func (tr *tree) make(path string) {
	tr.t.Helper()
	until(tr.t, time.Minute, "created "+path, func() error {
		_, err := tr.conn.Create(path, []byte{}, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) { // an attempt before, whose answer was lost, made it
			return nil
		}
		return err
	})
}

func (tr *tree) read(path string) string {
	tr.t.Helper()
	data, _, err := tr.conn.Get(path)
	if err != nil {
		tr.t.Fatalf("read %s: %v", path, err)
	}
	return string(data)
}

func (tr *tree) children(path string) []string {
	tr.t.Helper()
	names, _, err := tr.conn.Children(path)
	if err != nil {
		tr.t.Fatalf("list %s: %v", path, err)
	}
	slices.Sort(names)
	return names
}
