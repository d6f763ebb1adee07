package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/kvtest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/zookeeper"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

func (tr *tree) backend(open func(t testing.TB) worker.Registry) drivertest.RegistryBackend {
	return drivertest.RegistryBackend{
		Open: open,
		Corrupt: func(t testing.TB, id int64, text string) {
			cell := tr.path("workers", strconv.FormatInt(id/1024, 10), strconv.FormatInt(id, 10))
			tr.parents(cell)
			tr.set(cell, text)
		},
	}
}

func TestPoolRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
		tr := newTree(t)
		tr.pool(t)
		return tr.backend(func(t testing.TB) worker.Registry { return kvtest.Registry(tr.bare(t)) })
	})
}

func TestLeafRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
		tr := newTree(t)
		return tr.backend(func(t testing.TB) worker.Registry { return tr.leaf(t, nil).Records() })
	})
}

// The other rules do not fit a Leaf itself: it knows one worker ID.
func TestLeafAssigns(t *testing.T) {
	drivertest.TestAssigner(t, func(t testing.TB) drivertest.RegistryBackend {
		tr := newTree(t)
		return drivertest.RegistryBackend{Open: func(t testing.TB) worker.Registry { return tr.leaf(t, nil) }}
	})
}

func TestStore(t *testing.T) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		tr := newTree(t)
		tr.store(t)
		return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return kvtest.Store(tr.bare(t)) }}
	})
}

// many is how many cells are listed: all that there can be in the lab, else some.
var many = map[bool]int{true: 524_288, false: 1024}[os.Getenv("LEAF_LAB") != ""]

// Many cells are listed. They are written many at once: with a swap for each that takes most
// of an hour. A server that snapshots so many nodes is silent for a while.
func TestMany(t *testing.T) {
	const atOnce = 512
	tr := newTree(t)
	tr.store(t)
	tr.pool(t)
	conn, events, err := zk.Connect([]string{tr.addr}, 40*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for range events {
		}
	}()
	path := zookeeper.Paths(tr.chroot, name)
	made := make(map[string]bool)
	for first := 0; first < many; first += atOnce {
		var creates []any
		create := func(kind kv.Kind, name, text string) {
			node := path(kv.Key{Kind: kind, Name: name})
			if above := node[:strings.LastIndexByte(node, '/')]; !made[above] {
				tr.parents(above)
				made[above] = true
			}
			creates = append(creates, &zk.CreateRequest{Path: node, Data: []byte(text), Acl: zk.WorldACL(zk.PermAll)})
		}
		for i := int64(first); i < int64(first+atOnce); i++ {
			record, err := drivertest.ManyRecord(i).MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			tag := drivertest.ManyTag(i)
			create(kv.Tags, tag.Name, fmt.Sprintf(`{"v":1,"step":%d}`, tag.Step))
			create(kv.Workers, strconv.FormatInt(i, 10), string(record))
		}
		if _, err := conn.Multi(creates...); err != nil {
			t.Fatal(err)
		}
	}
	opts := tr.options()
	opts.SessionTimeout = 40 * time.Second
	db, err := zookeeper.Open([]string{tr.addr}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	drivertest.TestListed(t, db.Store(), db.Registry(), many)
}

// So many long names below one node would be a list of more than 1 MB, which ZooKeeper's
// own clients refuse.
func TestListsAreSmall(t *testing.T) {
	tr := newTree(t)
	p := behind(t, tr)
	s := tr.store(t)
	const tags = 3000
	var wg sync.WaitGroup
	for first := range 64 {
		wg.Go(func() {
			for i := first; i < tags; i += 64 {
				name := strings.Repeat("\u00fc", 60) + strconv.Itoa(i) // 6 bytes for each of them in a path
				if err := s.Create(t.Context(), segment.Tag{Name: name, Step: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	listed := 0
	for _, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if n := p.largest.Load(); listed != tags || n > 1<<20/8 {
		t.Errorf("%d tags, and the largest answer has %d bytes", listed, n)
	}
}

// The registry can use an existing connection, and leaves it open.
func TestConnectionGiven(t *testing.T) {
	tr := newTree(t)
	tr.store(t, order)
	db, err := zookeeper.New(tr.conn, tr.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Store().Advance(t.Context(), order.Name, 1); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := tr.conn.Exists(tr.chroot); err != nil {
		t.Errorf("the connection does not work any more: %v", err)
	}
}

func TestMissingChroot(t *testing.T) {
	tr := newTree(t)
	tr.chroot += "/missing"
	_, poolErr := tr.bare(t).Registry().Load(t.Context(), 1)
	_, loadErr := tr.leaf(t, nil).Load(t.Context(), 1)
	_, assignErr := tr.leaf(t, nil).Assign(t.Context(), 1023)
	for what, err := range map[string]error{
		"load of pool": poolErr, "load of leaf": loadErr, "assign": assignErr, "init": tr.bare(t).InitRegistry(t.Context()),
	} {
		if err == nil || errors.Is(err, worker.ErrNotCreated) || !strings.Contains(err.Error(), "no "+tr.chroot+",") {
			t.Errorf("%s: %v, want one that names the missing chroot", what, err)
		}
	}
	if exists, _, err := tr.conn.Exists(tr.chroot); err != nil || exists {
		t.Errorf("the missing chroot was created (%v)", err)
	}
}

func TestPoolRefusesToShareWithJavaLeaf(t *testing.T) {
	tr := newTree(t)
	p := tr.pool(t)
	if _, err := p.Load(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	startJava(t, tr, "192.0.2.9", "8080")
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "layout=leaf") {
			t.Errorf("%s: %v, want one that says what to do", what, err)
		}
	}
	_, err := p.List(t.Context())
	refused("list", err)
	fresh := tr.bare(t).Registry()
	_, err = fresh.Load(t.Context(), 1)
	refused("first load", err)
	_, err = tr.bare(t).Registry().Swap(t.Context(), worker.Record{Worker: 1}, worker.Record{Worker: 1, Term: 1})
	refused("first swap", err)
	refused("init", tr.bare(t).InitRegistry(t.Context()))

	for _, child := range tr.forever() {
		if err := tr.conn.Delete(tr.path("forever", child), -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fresh.List(t.Context()); err != nil {
		t.Errorf("after they are gone: %v", err)
	}
}

func TestCellsArePersistentAndOpen(t *testing.T) {
	tr := newTree(t)
	p := tr.pool(t)
	r := worker.Record{Worker: 7, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(1795260434883)}
	if _, err := p.Swap(t.Context(), worker.Record{Worker: 7}, r); err != nil {
		t.Fatal(err)
	}
	text, err := r.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	data, stat := tr.get(tr.path("workers", "0", "7"))
	if data != string(text) || stat.EphemeralOwner != 0 {
		t.Errorf("the cell holds %q and has owner %x, want %q and none", data, stat.EphemeralOwner, text)
	}
	acl, _, err := tr.conn.GetACL(tr.path("workers", "0", "7"))
	if err != nil || len(acl) != 1 || acl[0] != zk.WorldACL(zk.PermAll)[0] {
		t.Errorf("the cell's access list is %v, %v, want world:anyone", acl, err)
	}
}

func TestClockIsThatOfAWrite(t *testing.T) {
	tr := newTree(t)
	p := tr.pool(t)
	first, err := p.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, stat := tr.get(tr.path("clock"))
	if stat.Mtime != first.UnixMilli() {
		t.Errorf("clock %v, but the node was written at %d", first, stat.Mtime)
	}
	eventually(t, "the clock goes on", func() bool {
		next, err := p.Clock(t.Context())
		return err == nil && next.After(first)
	})
}

func TestOpenRefuses(t *testing.T) {
	good := []string{"127.0.0.1:1"}
	for what, c := range map[string]struct {
		servers []string
		name    string
		change  func(*zookeeper.Options)
	}{
		"no server":        {nil, name, nil},
		"server without":   {[]string{""}, name, nil},
		"path in server":   {[]string{"h:1/x"}, name, nil},
		"no name":          {good, "", nil},
		"name with slash":  {good, "a/b", nil},
		"name dots":        {good, "..", nil},
		"relative chroot":  {good, name, func(o *zookeeper.Options) { o.Chroot = "x" }},
		"chroot with gap":  {good, name, func(o *zookeeper.Options) { o.Chroot = "/x//y" }},
		"no address":       {good, name, func(o *zookeeper.Options) { o.IP = "" }},
		"host name":        {good, name, func(o *zookeeper.Options) { o.IP = "my-host" }},
		"IPv6":             {good, name, func(o *zookeeper.Options) { o.IP = "2001:db8::1" }},
		"IPv4 in IPv6":     {good, name, func(o *zookeeper.Options) { o.IP = "::ffff:192.0.2.2" }},
		"no port":          {good, name, port(0)},
		"negative port":    {good, name, port(-8080)},
		"port too large":   {good, name, port(65536)},
		"negative timeout": {good, name, func(o *zookeeper.Options) { o.SessionTimeout = -1 }},
	} {
		opts := (&tree{}).options()
		if c.change != nil {
			c.change(opts)
		}
		opts.Name = c.name
		l, err := zookeeper.OpenLeaf(c.servers, opts)
		if err == nil {
			l.Close()
			t.Errorf("%s: opened", what)
		}
	}
}

func TestServersMayLackAPort(t *testing.T) {
	db, err := zookeeper.Open([]string{"127.0.0.1", "[::1]:2182"}, &zookeeper.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

func TestInitTogether(t *testing.T) {
	drivertest.TestInit(t, func(t testing.TB) func(context.Context) error {
		tree := newTree(t)
		return func(ctx context.Context) error {
			db, err := zookeeper.Open([]string{tree.addr}, tree.options())
			if err != nil {
				return err
			}
			defer db.Close()
			return db.InitRegistry(ctx)
		}
	})
}

// The error names one of several unreadable nodes, on one line.
func TestNodesKeptFromUs(t *testing.T) {
	tr := newTree(t)
	r := tr.pool(t)
	for id := range int64(3) {
		if _, err := r.Swap(t.Context(), worker.Record{Worker: id}, worker.Record{Worker: id, Term: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.conn.SetACL(tr.path("workers", "0", strconv.FormatInt(id, 10)), zk.DigestACL(zk.PermAll, "u", "p"), -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.List(t.Context()); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "ACL") {
		t.Errorf("list: %v", err)
	}
}
