package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// parallelGets is how many cells of a List are read at a time.
const parallelGets = 16

// cells are the znodes of the workers' records, which both layouts share.
type cells struct {
	client *client
	logger *slog.Logger
	chroot string
	root   string // chroot/snowflake/name

	// create has missing parents of a cell created, as Java Leaf does with its own.
	create bool

	mu   sync.Mutex
	sent map[int64]string // worker: the text that was last sent by this registry
}

func newCells(servers []string, name string, o Options) (*cells, error) {
	servers, err := checkServers(servers)
	if err == nil {
		err = o.check()
	}
	if err == nil && badElement(name) {
		err = fmt.Errorf("%w: name %q cannot be part of a path", leaf.ErrInvalid, name)
	}
	if err != nil {
		return nil, fmt.Errorf("open zookeeper registry: %w", err)
	}
	return &cells{client: newClient(servers, o.SessionTimeout, o.Logger), logger: o.Logger, chroot: o.Chroot,
		root: o.Chroot + "/snowflake/" + name, sent: make(map[int64]string)}, nil
}

func (c *cells) workers() string { return c.root + "/workers" }
func (c *cells) clock() string   { return c.root + "/clock" }
func (c *cells) forever() string { return c.root + "/forever" }

func (c *cells) cell(worker int64) string { return c.workers() + "/" + strconv.FormatInt(worker, 10) }

// Close ends the connection. It does not wait for a server that does not answer.
func (c *cells) Close() error {
	c.client.close()
	return nil
}

// Load returns the record in the cell of a worker.
func (c *cells) Load(ctx context.Context, id int64) (worker.Record, error) {
	return wrap(c, "load", id, func() (worker.Record, error) {
		return call(ctx, c.client, func(conn *zk.Conn) (worker.Record, error) {
			r, _, err := c.read(conn, id)
			return r, err
		})
	})
}

// Swap writes new into the cell if that holds old. It sends the write once.
func (c *cells) Swap(ctx context.Context, old, new worker.Record) error {
	_, err := wrap(c, "swap", old.Worker, func() (struct{}, error) {
		if old.Worker != new.Worker {
			return struct{}{}, fmt.Errorf("%w: the new record is worker %d's", leaf.ErrInvalid, new.Worker)
		}
		if new.IsZero() {
			return struct{}{}, fmt.Errorf("%w: the new record is that of a cell which was never written", leaf.ErrInvalid)
		}
		return call(ctx, c.client, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, c.swap(ctx, conn, old, new) })
	})
	return err
}

// wrap says what an error of do came from, and refuses what is no worker ID.
func wrap[T any](c *cells, what string, id int64, do func() (T, error)) (T, error) {
	var zero T
	if id < 0 {
		return zero, fmt.Errorf("%s record of worker %d: %w", what, id, leaf.ErrInvalid)
	}
	v, err := do()
	if err != nil {
		return zero, fmt.Errorf("%s record of worker %d in %s: %w", what, id, c.root, err)
	}
	return v, nil
}

// absent is the version of a cell that was never written.
const absent = -1

// read returns the record and the version of its cell. The sync makes a follower
// catch up with what was acknowledged before.
func (c *cells) read(conn *zk.Conn, id int64) (worker.Record, int32, error) {
	r := worker.Record{Worker: id}
	if _, err := conn.Sync(c.workers()); err != nil {
		return r, 0, err
	}
	text, stat, err := conn.Get(c.cell(id))
	if errors.Is(err, zk.ErrNoNode) {
		return r, absent, c.explain(conn)
	}
	if err == nil {
		err = r.UnmarshalText(text)
	}
	if err != nil {
		return worker.Record{Worker: id}, 0, err
	}
	return r, stat.Version, nil
}

// explain returns why a cell may be missing, but for never having been written.
func (c *cells) explain(conn *zk.Conn) error {
	if c.create {
		return c.explainChroot(conn)
	}
	exists, _, err := conn.Exists(c.workers())
	if err != nil || exists {
		return err
	}
	if err := c.explainChroot(conn); err != nil {
		return err
	}
	return fmt.Errorf("%w: create it with leaf init --workers URL", worker.ErrNotCreated)
}

// explainChroot fails if the chroot is missing. It is not created: Java Leaf's client
// does not either, and a mistyped one must not begin a registry of its own.
func (c *cells) explainChroot(conn *zk.Conn) error {
	if c.chroot == "" {
		return nil
	}
	exists, _, err := conn.Exists(c.chroot)
	if err == nil && !exists {
		err = fmt.Errorf("zookeeper has no %s, below which everything is to be: correct the path or create it", c.chroot)
	}
	return err
}

func (c *cells) swap(ctx context.Context, conn *zk.Conn, old, new worker.Record) error {
	text, err := new.MarshalText()
	if err != nil {
		return err
	}
	current, version, err := c.read(conn, old.Worker)
	if err != nil {
		return err
	}
	if !current.Equal(old) {
		return worker.ErrConflict
	}
	c.mu.Lock()
	c.sent[new.Worker] = string(text)
	c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err // nobody waits for it any more
	}
	path := c.cell(old.Worker)
	if version != absent {
		_, err = conn.Set(path, text, version)
	} else if err = create(conn, path, text); errors.Is(err, zk.ErrNoNode) && c.create {
		if err = c.makeParents(conn, c.workers()); err == nil {
			err = create(conn, path, text) // the first one was refused for sure
		}
	}
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) {
		return worker.ErrConflict
	}
	return err
}

// create makes a persistent node that everybody may change, as Java Leaf's are.
func create(conn *zk.Conn, path string, data []byte) error {
	_, err := conn.Create(path, data, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	return err
}

// makeParents makes path and what is missing above it, down from the chroot, empty as
// Java Leaf does.
func (c *cells) makeParents(conn *zk.Conn, path string) error {
	if err := c.explainChroot(conn); err != nil {
		return err
	}
	for end := len(c.chroot); end < len(path); {
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			next = len(path) - end - 1
		}
		end += 1 + next
		// Looked for first: who may not write to the root may still have the rest.
		exists, _, err := conn.Exists(path[:end])
		if err == nil && !exists {
			err = create(conn, path[:end], []byte{})
		}
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path[:end], err)
		}
	}
	return nil
}

// List returns all records that were ever written, by worker ID.
func (c *cells) List(ctx context.Context) ([]worker.Record, error) {
	records, err := call(ctx, c.client, func(conn *zk.Conn) ([]worker.Record, error) { return c.list(ctx, conn) })
	if err != nil {
		return nil, fmt.Errorf("list worker records in %s: %w", c.root, err)
	}
	return records, nil
}

func (c *cells) list(ctx context.Context, conn *zk.Conn) ([]worker.Record, error) {
	if _, err := conn.Sync(c.workers()); err != nil {
		return nil, err
	}
	names, _, err := conn.Children(c.workers())
	if errors.Is(err, zk.ErrNoNode) {
		return nil, c.explain(conn)
	}
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(names))
	for _, name := range names {
		id, err := strconv.ParseInt(name, 10, 64)
		if err != nil || id < 0 || strconv.FormatInt(id, 10) != name {
			c.logger.Warn("a node that is no worker's record", "path", c.workers()+"/"+name)
			continue
		}
		ids = append(ids, id)
	}
	return c.readAll(ctx, conn, ids)
}

func (c *cells) readAll(ctx context.Context, conn *zk.Conn, ids []int64) ([]worker.Record, error) {
	records, errs := make([]worker.Record, len(ids)), make([]error, len(ids))
	var readers sync.WaitGroup
	for first := range min(parallelGets, len(ids)) {
		readers.Go(func() {
			for i := first; i < len(ids) && ctx.Err() == nil; i += parallelGets {
				records[i].Worker = ids[i]
				text, _, err := conn.Get(c.cell(ids[i]))
				if err == nil {
					err = records[i].UnmarshalText(text)
				}
				if err != nil {
					errs[i] = fmt.Errorf("worker %d: %w", ids[i], err)
				}
			}
		})
	}
	readers.Wait()
	if err := cmp.Or(ctx.Err(), cmp.Or(errs...)); err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b worker.Record) int { return cmp.Compare(a.Worker, b.Worker) })
	return records, nil
}

// Clock returns the time by the clock of the leading server: that of a write.
func (c *cells) Clock(ctx context.Context) (time.Time, error) {
	t, err := call(ctx, c.client, func(conn *zk.Conn) (time.Time, error) {
		stat, err := conn.Set(c.clock(), nil, -1)
		if errors.Is(err, zk.ErrNoNode) {
			if err = c.makeClock(conn); err == nil {
				stat, err = conn.Set(c.clock(), nil, -1)
			}
		}
		if err != nil {
			return time.Time{}, err
		}
		return time.UnixMilli(stat.Mtime), nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read zookeeper's clock in %s: %w", c.root, err)
	}
	return t, nil
}

func (c *cells) makeClock(conn *zk.Conn) error {
	if err := c.explain(conn); err != nil {
		return err
	}
	return c.makeParents(conn, c.clock())
}

// wrote reports whether the text is what this registry last sent to a worker's cell.
func (c *cells) wrote(id int64, text []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[id] == string(text)
}
