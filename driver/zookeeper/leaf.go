package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry = (*Leaf)(nil)
	_ worker.Assigner = (*Leaf)(nil)
	_ worker.Watcher  = (*Leaf)(nil)
)

// A Leaf takes part in the tree of Java Leaf, for fleets with Java servers, and keeps its records
// next to it. It is a [worker.Registry], a [worker.Assigner] and a [worker.Watcher]. Its methods
// are safe for concurrent use.
type Leaf struct {
	*kv.Registry // the records, without the rules about who may hold which worker ID

	db      *kv.DB
	nodes   *backend
	clock   *worker.Clock // anchored when the Leaf was opened
	logger  *slog.Logger
	address string // ip:port
	writer  string
	opts    Options
	lock    chan struct{} // holds one element while a worker ID is looked for

	mu      sync.Mutex
	current *assignment
	still   *lastWrite // of the child that may be taken over; guarded by lock
}

// OpenLeaf returns a registry in Java Leaf's tree of [Options].Name, on a ZooKeeper with
// these servers, host:port each. It connects at the first call, which reports the problems. It
// makes a connection of its own, because it must notice a loss at once.
func OpenLeaf(servers []string, opts *Options) (*Leaf, error) {
	o := opts.withDefaults()
	address, err := o.address()
	if err != nil {
		return nil, fmt.Errorf("open zookeeper registry: %w", err)
	}
	nodes, err := newBackend(servers, o.Name, o)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	clock := worker.NewClockFrom(o.Now, func() time.Duration { return time.Since(start) })
	db := kv.New(nodes, &kv.Options{Create: true})
	return &Leaf{Registry: db.Registry(), db: db, nodes: nodes, logger: o.Logger, clock: clock, address: address, opts: o,
		writer: worker.NewInstance().String(), lock: make(chan struct{}, 1)}, nil
}

// Load returns the record of a worker. It fails with an error that wraps
// [worker.ErrTaken] if the worker ID was assigned and then used by another server.
func (l *Leaf) Load(ctx context.Context, id int64) (worker.Record, error) {
	if err := l.taken(id); err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	return l.Registry.Load(ctx, id)
}

// Swap replaces old by new. It sends the write once. It fails as Load does. For the record of a
// holder it also fails if the worker ID is neither the assigned one nor that of the previous
// process. With such a record the uploads to Java Leaf's tree begin.
func (l *Leaf) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	var a *assignment
	err := l.taken(old.Worker)
	if err == nil && new.Held() {
		a, err = l.resume(ctx, new.Worker)
	}
	if err != nil {
		return worker.Record{}, fmt.Errorf("swap worker %d: %w", old.Worker, err)
	}
	now, err := l.Registry.Swap(ctx, old, new)
	if err != nil {
		return worker.Record{}, err
	}
	if a != nil {
		a.leaseOnce.Do(func() { close(a.leased) })
	}
	return now, nil
}

// Watch returns a channel that closes after a write to a worker's record, after another server's
// use of its worker ID, and at the end of ctx or the registry. It is for the holder, and fails as
// Swap does.
func (l *Leaf) Watch(ctx context.Context, id int64) (<-chan struct{}, error) {
	a, err := l.resume(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("watch worker %d: %w", id, err)
	}
	return l.nodes.watch(ctx, kv.Key{Kind: kv.Workers, Name: strconv.FormatInt(id, 10)}, a.lost)
}

// Close ends the connection.
func (l *Leaf) Close() error { return l.db.Close() }

// An assignment is a child of ours while this registry uses its worker ID.
type assignment struct {
	name   string
	id     int64
	lost   chan struct{} // closed when another server uses it; why is set before
	leased chan struct{} // closed when its lease is held

	leaseOnce sync.Once
	why       error
}

func (a *assignment) err() error {
	select {
	case <-a.lost:
		return a.why
	default:
		return nil
	}
}

func (l *Leaf) assigned() *assignment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// taken returns why worker ID id is no longer this server's.
func (l *Leaf) taken(id int64) error {
	if a := l.assigned(); a != nil && a.id == id {
		return a.err()
	}
	return nil
}

// Assign returns the worker ID of this server: the number of the highest of its children in Java
// Leaf's tree. It makes a missing child. Until another server writes to that child, further calls
// return the same ID.
//
// If another program wrote a child last, Assign takes it over only after a time without writes
// ([Options].StandStill): until then calls fail, and name the time. If the other server does write,
// the error wraps [worker.ErrTaken].
func (l *Leaf) Assign(ctx context.Context, max int64) (int64, error) {
	a, err := l.assign(ctx, func() (child, error) { return l.choose(ctx, max) })
	if err == nil && a.id > max {
		err = l.runOut(a.id, max)
	}
	if err != nil {
		return 0, fmt.Errorf("assign worker ID in %s: %w", l.nodes.forever(), err)
	}
	return a.id, nil
}

// resume returns the assignment of worker ID id. Before the first assignment it is that of the
// previous process, whose lease this one continues: it is valid unless another server has written
// to the child since.
func (l *Leaf) resume(ctx context.Context, id int64) (*assignment, error) {
	a, err := l.assign(ctx, func() (child, error) {
		if err := l.taken(id); err != nil {
			return child{}, err
		}
		return call(ctx, l.nodes.client, func(conn *zk.Conn) (child, error) { return l.inherit(conn, id) })
	})
	if err == nil && a.id != id {
		err = fmt.Errorf("%w: the one that is assigned to this server is %d", worker.ErrTaken, a.id)
	}
	return a, err
}

// inherit returns the child that the process before left behind.
func (l *Leaf) inherit(conn *zk.Conn, id int64) (child, error) {
	if err := l.nodes.sync(conn); err != nil {
		return child{}, err
	}
	c, err := l.inspect(conn, fmt.Sprintf("%s-%0*d", l.address, suffixDigits, id), id)
	switch {
	case errors.Is(err, errGone):
		err = fmt.Errorf("%w: %s has no node of this server, %s, with that number", worker.ErrTaken, l.nodes.forever(), l.address)
	case err == nil && !c.ours():
		err = l.takenBy(c.name)
	}
	return c, err
}

// assign returns the assignment, and makes a missing child.
func (l *Leaf) assign(ctx context.Context, find func() (child, error)) (*assignment, error) {
	select {
	case l.lock <- struct{}{}:
		defer func() { <-l.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a := l.assigned(); a != nil && a.err() == nil {
		return a, ctx.Err()
	}
	c, err := find()
	if err != nil {
		return nil, err
	}
	a := &assignment{name: c.name, id: c.id, lost: make(chan struct{}), leased: make(chan struct{})}
	l.mu.Lock()
	l.current, l.still = a, nil
	l.mu.Unlock()
	if !l.nodes.client.spawn(func() { l.keepUploading(a, c) }) {
		return nil, leaf.ErrClosed
	}
	l.logger.Info("worker ID assigned by zookeeper", "worker", a.id, "node", l.child(a.name))
	return a, nil
}

// A lastWrite is a child and the time since which it has had no write.
type lastWrite struct {
	child child
	since time.Time
}

// checkStill fails while another server may still write to c: until c had no write for a
// while. Each call looks once.
func (l *Leaf) checkStill(c child) error {
	before := l.still
	if before == nil || before.child.name != c.name || !before.child.same(c) {
		l.still = &lastWrite{c, time.Now()}
		if before != nil && before.child.name == c.name {
			return l.takenBy(c.name)
		}
	}
	until := l.still.since.Add(l.opts.StandStill)
	if time.Now().Before(until) {
		return fmt.Errorf("%w: another server with the address %s wrote to %s last and may still run: waiting for %v without a write, until %s",
			worker.ErrWaiting, l.address, c.name, l.opts.StandStill, until.Format(time.TimeOnly))
	}
	// A server of Java Leaf leaves no other trace of the times it issued than its uploads.
	ahead := time.Duration(c.time-l.opts.Now().UnixMilli())*time.Millisecond + l.opts.UploadEvery
	if ahead > 0 {
		return fmt.Errorf("%w: the server before this one at %s may have used times up to %v ahead of this machine's clock: "+
			"correct the clock or wait", leaf.ErrClock, l.address, ahead)
	}
	return nil
}

func (l *Leaf) takenBy(name string) error {
	return fmt.Errorf("%w: another server with the address %s writes to %s: stop it, or give this one another address "+
		"(leaf.snowflake.port, or its IP)", worker.ErrTaken, l.address, l.child(name))
}

func (l *Leaf) runOut(id, max int64) error {
	return fmt.Errorf("worker IDs have run out: the next one is %d, the largest is %d, and Java Leaf never reuses one: "+
		"keep the address of a server when it is replaced; to start over, stop all servers and delete %s, or change to "+
		"a pool (layout=pool) once no server of Java Leaf is left", id, max, l.nodes.forever())
}
