package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
)

const (
	parallelGets = 16   // concurrent reads of a listing
	listPage     = 512  // nodes that one call of a list reads
	perShard     = 1024 // worker IDs below one node
	tagShards    = 64   // nodes that the tags are spread over: a list of children ends at 1 MB
)

// Open returns the store and the pool of worker IDs of [Options].Name, on a ZooKeeper with these
// servers, host:port each. It is for fleets without a server of Java Leaf. It connects at the first
// call, which reports the problems.
func Open(servers []string, opts *Options) (*kv.DB, error) {
	o := opts.withDefaults()
	b, err := newBackend(servers, cmp.Or(o.Name, DefaultName), o)
	if err != nil {
		return nil, err
	}
	return kv.New(pool{b}, nil), nil
}

// New is [Open] on an existing connection, which [kv.DB.Close] leaves open. That is safe: each
// write compares. The client library sends it once, although, after an interruption, perhaps after
// its caller has left.
func New(conn *zk.Conn, opts *Options) (*kv.DB, error) {
	o := opts.withDefaults()
	b, err := newBackend([]string{"127.0.0.1"}, cmp.Or(o.Name, DefaultName), o)
	if err != nil {
		return nil, err
	}
	b.client.servers[0] = cmp.Or(conn.Server(), "the connection given")
	b.client.session = &session{client: b.client, zk: conn, shared: true}
	return kv.New(pool{b}, nil), nil
}

// A backend has its cells in nodes below /snowflake/NAME. It is a [kv.Backend] and a [kv.Watcher].
type backend struct {
	client *client
	chroot string
	root   string // chroot/snowflake/name
}

func newBackend(servers []string, name string, o Options) (*backend, error) {
	servers, err := withPorts(servers)
	if err == nil {
		err = o.check()
	}
	if err == nil && badElement(name) {
		err = fmt.Errorf("%w: name %q cannot be part of a path", leaf.ErrInvalid, name)
	}
	if err != nil {
		return nil, fmt.Errorf("open zookeeper: %w", err)
	}
	return &backend{client: newClient(servers, o), chroot: o.Chroot, root: o.Chroot + "/snowflake/" + name}, nil
}

// A pool is a backend that does not share worker IDs with servers of Java Leaf, which do
// not look at its records.
type pool struct{ *backend }

// Check reports servers of Java Leaf.
func (p pool) Check(ctx context.Context) error {
	return do(ctx, p.client, func(conn *zk.Conn) error {
		names, err := p.children(conn, p.forever())
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("%w: %s has %d children, %s for one: servers in Java Leaf's tree use worker IDs without looking at the "+
				"pool's: open that tree instead (layout=leaf), or, once all of them are stopped for good, delete %[2]s",
				leaf.ErrUnsupported, p.forever(), len(names), names[0])
		}
		return err
	})
}

// String names ZooKeeper and its servers.
func (b *backend) String() string { return "zookeeper at " + b.client.String() }

// KeyName returns the path of a key's node.
func (b *backend) KeyName(key kv.Key) string { return "node " + b.path(key) }

func (b *backend) clock() string   { return b.root + "/clock" }
func (b *backend) forever() string { return b.root + "/forever" }

// path returns the node of a key.
func (b *backend) path(key kv.Key) string {
	folder := string(key.Kind)
	switch key.Kind {
	case kv.Workers:
		id, _ := strconv.ParseInt(key.Name, 10, 64)
		folder = fmt.Sprintf("%s/%d", folder, id/perShard)
	case kv.Tags, kv.Periods:
		h := fnv.New32a()
		_, _ = h.Write([]byte(key.Name))
		folder = fmt.Sprintf("%s/%d", folder, h.Sum32()%tagShards)
	}
	name := url.PathEscape(key.Name)
	if name == "." || name == ".." {
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	return b.root + "/" + folder + "/" + name
}

// sync makes a follower catch up with the acknowledged writes.
func (b *backend) sync(conn *zk.Conn) error {
	_, err := conn.Sync(b.root)
	return err
}

// read returns the cell in a node, after a sync.
func (b *backend) read(conn *zk.Conn, key kv.Key) (kv.Cell, error) {
	cell, _, err := b.readNode(conn, key)
	return cell, err
}

func (b *backend) readNode(conn *zk.Conn, key kv.Key) (kv.Cell, *zk.Stat, error) {
	data, stat, err := conn.Get(b.path(key))
	if errors.Is(err, zk.ErrNoNode) {
		return kv.Cell{Key: key}, nil, nil
	}
	if err != nil {
		return kv.Cell{}, nil, err
	}
	return kv.Cell{Key: key, Value: string(data), Version: version(stat)}, stat, nil
}

// version tells the writes of a node apart, and the node from a later one of its name.
func version(stat *zk.Stat) string { return fmt.Sprintf("%d.%d", stat.Czxid, stat.Version) }

// Get returns the cell of a key.
func (b *backend) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	return call(ctx, b.client, func(conn *zk.Conn) (kv.Cell, error) {
		if err := b.sync(conn); err != nil {
			return kv.Cell{}, err
		}
		return b.read(conn, key)
	})
}

// Swap has the cell hold value if its node is still old's.
func (b *backend) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	return call(ctx, b.client, func(conn *zk.Conn) (kv.Cell, error) {
		stat, err := b.write(conn, old, []byte(value))
		if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) && old.Version != "" {
			return kv.Cell{}, kv.ErrConflict
		}
		if err != nil {
			return kv.Cell{}, err
		}
		return kv.Cell{Key: old.Key, Value: value, Version: version(stat)}, nil
	})
}

// write writes the cell. ZooKeeper compares only the number of writes of a node, which returns
// after a restore or a new creation. So the backend reads the node first; from that read to the
// write the number is safe. The read may lag behind old, so write syncs before it reports a
// conflict.
func (b *backend) write(conn *zk.Conn, old kv.Cell, data []byte) (*zk.Stat, error) {
	path := b.path(old.Key)
	if old.Version == "" {
		return b.create(conn, path, data)
	}
	now, stat, err := b.readNode(conn, old.Key)
	if err == nil && (now.Version != old.Version || now.Value != old.Value) {
		if err = b.sync(conn); err == nil {
			now, stat, err = b.readNode(conn, old.Key)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case now.Version != old.Version || now.Value != old.Value:
		return nil, kv.ErrConflict
	}
	return conn.Set(path, data, stat.Version)
}

// create makes a node and its missing parents, after ZooKeeper refused the first attempt for
// certain. Nothing deletes the node of a cell, and its first version is 0.
func (b *backend) create(conn *zk.Conn, path string, data []byte) (*zk.Stat, error) {
	err := create(conn, path, data)
	if errors.Is(err, zk.ErrNoNode) {
		if err = b.makePath(conn, parent(path)); err == nil {
			err = create(conn, path, data)
		}
	}
	if err != nil {
		return nil, err
	}
	_, stat, err := conn.Exists(path)
	if err != nil {
		return nil, err
	}
	return &zk.Stat{Czxid: stat.Czxid}, nil
}

// create makes a persistent node that everybody may change, as Java Leaf's are.
func create(conn *zk.Conn, path string, data []byte) error {
	_, err := conn.Create(path, data, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	return err
}

func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// makePath makes the node at path and those above it, empty as Java Leaf does, up to the
// chroot, which must exist. It looks for each first: a user may be refused a write to the
// root and be allowed the rest.
func (b *backend) makePath(conn *zk.Conn, path string) error {
	if path == b.chroot {
		return b.checkChroot(conn)
	}
	exists, _, err := conn.Exists(path)
	if exists || err != nil {
		return err
	}
	if err := b.makePath(conn, parent(path)); err != nil {
		return err
	}
	if err := create(conn, path, []byte{}); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}

// checkChroot fails if the chroot is missing. It is not created: Java Leaf's client
// does not either, and a mistyped one must not begin a registry of its own.
func (b *backend) checkChroot(conn *zk.Conn) error {
	if b.chroot == "" {
		return nil
	}
	exists, _, err := conn.Exists(b.chroot)
	if err == nil && !exists {
		err = fmt.Errorf("zookeeper has no %s, the chroot: correct the path or create it", b.chroot)
	}
	return err
}

// children returns the names below a node, empty without the node.
func (b *backend) children(conn *zk.Conn, path string) ([]string, error) {
	if err := b.sync(conn); err != nil {
		return nil, err
	}
	names, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, b.checkChroot(conn)
	}
	return names, err
}

// List yields the cells of a kind.
func (b *backend) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		keys, err := call(ctx, b.client, func(conn *zk.Conn) ([]kv.Key, error) { return b.keys(conn, kind) })
		if err != nil {
			yield(kv.Cell{}, err)
			return
		}
		for page := range slices.Chunk(keys, listPage) {
			cells, err := call(ctx, b.client, func(conn *zk.Conn) ([]kv.Cell, error) { return b.readAll(conn, page) })
			if err != nil {
				yield(kv.Cell{}, err)
				return
			}
			for _, cell := range cells {
				if cell.Version != "" && !yield(cell, nil) {
					return
				}
			}
		}
	}
}

// keys returns the keys of a kind.
func (b *backend) keys(conn *zk.Conn, kind kv.Kind) (keys []kv.Key, err error) {
	top := b.root + "/" + string(kind)
	shards, err := b.children(conn, top)
	for _, shard := range shards {
		names, _, err := conn.Children(top + "/" + shard)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			path := top + "/" + shard + "/" + name
			plain, err := url.PathUnescape(name)
			if key := (kv.Key{Kind: kind, Name: plain}); err == nil && b.path(key) == path {
				keys = append(keys, key)
			} else {
				b.client.logger.Warn("a zookeeper node is not a cell: delete it", "path", path)
			}
		}
	}
	return keys, err
}

func (b *backend) readAll(conn *zk.Conn, keys []kv.Key) ([]kv.Cell, error) {
	if err := b.sync(conn); err != nil {
		return nil, err
	}
	cells, errs := make([]kv.Cell, len(keys)), make([]error, len(keys))
	var readers sync.WaitGroup
	for first := range min(parallelGets, len(keys)) {
		readers.Go(func() {
			for i := first; i < len(keys); i += parallelGets {
				cells[i], errs[i] = b.read(conn, keys[i])
			}
		})
	}
	readers.Wait()
	return cells, cmp.Or(errs...) // one is enough to tell
}

// Clock returns the time by the clock of the leading server: that of a write.
func (b *backend) Clock(ctx context.Context) (time.Time, error) {
	return call(ctx, b.client, func(conn *zk.Conn) (time.Time, error) {
		stat, err := conn.Set(b.clock(), nil, -1)
		if errors.Is(err, zk.ErrNoNode) {
			if err = b.makePath(conn, b.clock()); err == nil {
				stat, err = conn.Set(b.clock(), nil, -1)
			}
		}
		if err != nil {
			return time.Time{}, err
		}
		return time.UnixMilli(stat.Mtime), nil
	})
}

// Watch returns a channel that closes after a possible write to a key's node, at the loss of the
// connection, and at the end of ctx or the backend.
func (b *backend) Watch(ctx context.Context, key kv.Key) (<-chan struct{}, error) {
	return b.watch(ctx, key, nil)
}

// watch also closes the channel when stop is closed.
func (b *backend) watch(ctx context.Context, key kv.Key, stop <-chan struct{}) (<-chan struct{}, error) {
	event, err := call(ctx, b.client, func(conn *zk.Conn) (<-chan zk.Event, error) { return watchNode(conn, b.path(key)) })
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{})
	if !b.client.spawn(func() {
		defer close(changed)
		select {
		case <-event:
		case <-stop:
		case <-ctx.Done():
		case <-b.client.ctx.Done():
		}
	}) {
		return nil, leaf.ErrClosed
	}
	return changed, nil
}

// watchNode returns a channel that delivers when a node changes, or comes into being.
func watchNode(conn *zk.Conn, path string) (<-chan zk.Event, error) {
	for {
		_, _, event, err := conn.GetW(path)
		if !errors.Is(err, zk.ErrNoNode) {
			return event, err
		}
		exists, _, event, err := conn.ExistsW(path)
		if err != nil || !exists {
			return event, err
		}
	}
}

// Close ends the connection. It does not wait for a server that does not answer.
func (b *backend) Close() error {
	b.client.close()
	return nil
}
