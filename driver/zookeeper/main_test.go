package zookeeper_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/zookeeper"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// shared is a server for tests that do not end it. Each test has a chroot of its own.
var shared *testserver.ZooKeeperServer

func TestMain(m *testing.M) { os.Exit(testserver.Main(m, &shared, testserver.StartZooKeeper)) }

const (
	name   = "lab"
	upload = 40 * time.Millisecond  // in place of 3 s
	still  = 400 * time.Millisecond // in place of 10 s
)

// A tree is a chroot with a client of the test.
type tree struct {
	t      testing.TB
	addr   string
	chroot string
	conn   *zk.Conn
}

// newTree makes a chroot on the shared server.
func newTree(t testing.TB) *tree { return newTreeOn(t, shared) }

func newTreeOn(t testing.TB, server *testserver.ZooKeeperServer) *tree {
	t.Helper()
	tr := &tree{t: t, addr: server.Addr(), chroot: fmt.Sprintf("/test-%s", worker.NewInstance()), conn: connect(t, server.Addr())}
	tr.create(tr.chroot, "")
	return tr
}

// connect returns a client of the library.
func connect(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range events {
		}
	}()
	t.Cleanup(conn.Close)
	return conn
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (tr *tree) path(elements ...string) string {
	return tr.chroot + "/snowflake/" + name + "/" + strings.Join(elements, "/")
}

func (tr *tree) create(path, data string) {
	tr.t.Helper()
	if _, err := tr.conn.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
		tr.t.Fatalf("create %s: %v", path, err)
	}
}

// parents makes path and its missing parents.
func (tr *tree) parents(path string) {
	tr.t.Helper()
	if err := mkdirs(tr.conn, len(tr.chroot), path); err != nil {
		tr.t.Fatal(err)
	}
}

// mkdirs makes path and its missing parents, empty, except its first bytes.
func mkdirs(conn *zk.Conn, exist int, path string) error {
	for end := exist + 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '/' {
			continue
		}
		if _, err := conn.Create(path[:end], []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists {
			return fmt.Errorf("create %s: %w", path[:end], err)
		}
	}
	return nil
}

func (tr *tree) get(path string) (string, *zk.Stat) {
	tr.t.Helper()
	data, stat, err := tr.conn.Get(path)
	if err != nil {
		tr.t.Fatalf("get %s: %v", path, err)
	}
	return string(data), stat
}

func (tr *tree) set(path, data string) {
	tr.t.Helper()
	if _, err := tr.conn.Set(path, []byte(data), -1); err != nil {
		tr.t.Fatalf("set %s: %v", path, err)
	}
}

// forever returns the names in Java Leaf's tree.
func (tr *tree) forever() []string {
	tr.t.Helper()
	names, _, err := tr.conn.Children(tr.path("forever"))
	if err != nil {
		tr.t.Fatal(err)
	}
	return names
}

func (tr *tree) options() *zookeeper.Options {
	return &zookeeper.Options{Name: name, Chroot: tr.chroot, SessionTimeout: 10 * time.Second, IP: "192.0.2.2", Port: 8080,
		StandStill: still, UploadEvery: upload}
}

// pool opens the records of an existing pool.
func (tr *tree) pool(t testing.TB) *kv.Registry {
	t.Helper()
	db := tr.bare(t)
	if err := db.InitRegistry(t.Context()); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return db.Registry()
}

// store opens an existing store.
func (tr *tree) store(t testing.TB, tags ...segment.Tag) *kv.Store {
	t.Helper()
	db := tr.bare(t)
	if err := db.Init(t.Context(), tags); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return db.Store()
}

// bare opens the tree without creating anything.
func (tr *tree) bare(t testing.TB) *kv.DB {
	t.Helper()
	db, err := zookeeper.Open([]string{tr.addr}, tr.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// leaf opens a registry in Java Leaf's tree, with changes to the options.
func (tr *tree) leaf(t testing.TB, change func(*zookeeper.Options)) *zookeeper.Leaf {
	t.Helper()
	opts := tr.options()
	if change != nil {
		change(opts)
	}
	l, err := zookeeper.OpenLeaf([]string{tr.addr}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// port has a registry appear under another port.
func port(n int) func(*zookeeper.Options) { return func(o *zookeeper.Options) { o.Port = n } }

// hold swaps a record of a holder into the cell that l was assigned.
func hold(t testing.TB, l *zookeeper.Leaf, id int64) worker.Record {
	t.Helper()
	old, err := l.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	held := old
	held.Instance, held.Term, held.Horizon = worker.NewInstance(), old.Term+1, time.UnixMilli(old.Term+1)
	if _, err := l.Swap(t.Context(), old, held); err != nil {
		t.Fatal(err)
	}
	return held
}

// eventually waits until check returns true.
func eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(time.Minute)
	for !check() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 1000}
