package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry = (*Pool)(nil)
	_ worker.Watcher  = (*Pool)(nil)
)

// A Pool keeps worker IDs that go from hand to hand, for fleets without a server of
// Java Leaf. It is a [worker.Registry] and a [worker.Watcher]. Its methods are safe
// for concurrent use.
type Pool struct {
	*cells
	alone atomic.Bool // nobody had a node in Java Leaf's tree when last looked
}

// OpenPool returns the pool of that name on the ZooKeeper whose servers are given as
// host:port. It does not wait for a connection: what is wrong shows at the first call.
func OpenPool(servers []string, name string, opts *Options) (*Pool, error) {
	cells, err := newCells(servers, name, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Pool{cells: cells}, nil
}

// Init creates the pool. If there is one it fails with an error that wraps
// [fs.ErrExist].
func (p *Pool) Init(ctx context.Context) error {
	_, err := call(ctx, p.client, func(conn *zk.Conn) (struct{}, error) {
		err := p.checkAlone(conn)
		if err == nil {
			err = p.makeParents(conn, p.clock())
		}
		if err == nil {
			err = create(conn, p.workers(), []byte{}) // last: from now on there is a pool
		}
		if errors.Is(err, zk.ErrNodeExists) {
			err = existsError{p.workers()}
		}
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("init zookeeper registry %s: %w", p.root, err)
	}
	return nil
}

// An existsError is [fs.ErrExist], without its words about files.
type existsError struct{ path string }

func (e existsError) Error() string        { return "zookeeper has a node " + e.path + " already" }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }

// Exists reports whether the pool was created.
func (p *Pool) Exists(ctx context.Context) (bool, error) {
	exists, err := call(ctx, p.client, func(conn *zk.Conn) (bool, error) {
		if _, err := conn.Sync(p.workers()); err != nil {
			return false, err
		}
		exists, _, err := conn.Exists(p.workers())
		return exists, err
	})
	if err != nil {
		return false, fmt.Errorf("look for zookeeper registry %s: %w", p.root, err)
	}
	return exists, nil
}

// Load returns the record in the cell of a worker.
func (p *Pool) Load(ctx context.Context, id int64) (worker.Record, error) {
	if err := p.checkOnce(ctx); err != nil {
		return worker.Record{}, err
	}
	return p.cells.Load(ctx, id)
}

// Swap writes new into the cell if that holds old. It sends the write once.
func (p *Pool) Swap(ctx context.Context, old, new worker.Record) error {
	if err := p.checkOnce(ctx); err != nil {
		return err
	}
	return p.cells.Swap(ctx, old, new)
}

// List returns all records that were ever written, by worker ID. It is the first
// step of a claim, so it looks for servers of Java Leaf each time.
func (p *Pool) List(ctx context.Context) ([]worker.Record, error) {
	p.alone.Store(false)
	if err := p.checkOnce(ctx); err != nil {
		return nil, err
	}
	return p.cells.List(ctx)
}

func (p *Pool) checkOnce(ctx context.Context) error {
	if p.alone.Load() {
		return nil
	}
	_, err := call(ctx, p.client, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, p.checkAlone(conn) })
	if err != nil {
		return fmt.Errorf("use worker IDs of %s: %w", p.root, err)
	}
	p.alone.Store(true)
	return nil
}

// checkAlone refuses to share worker IDs with those who look at nothing here.
func (p *Pool) checkAlone(conn *zk.Conn) error {
	if _, err := conn.Sync(p.root); err != nil {
		return err
	}
	names, _, err := conn.Children(p.forever())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return p.explainChroot(conn)
	case err != nil:
		return err
	case len(names) > 0:
		return fmt.Errorf("%s has %d children, %s for one: servers of Java Leaf, or with layout=leaf, use the worker IDs in "+
			"these names without looking at the pool's: use layout=leaf as well, or, once all of them are stopped for good, "+
			"delete %[1]s", p.forever(), len(names), names[0])
	}
	return nil
}
