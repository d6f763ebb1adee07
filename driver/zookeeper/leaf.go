package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// A Leaf takes part in the tree of Java Leaf, for fleets in which its servers run,
// and keeps its records beside it. It is a [worker.Registry], a [worker.Assigner] and
// a [worker.Watcher]. Its methods are safe for concurrent use.
type Leaf struct {
	*kv.Registry // the records, without the rules about who may hold which worker ID

	db      *kv.DB
	nodes   *backend
	clock   *worker.Clock // anchored when the Leaf was opened
	logger  *slog.Logger
	address string // ip:port
	writer  string
	opts    Options
	turn    chan struct{} // holds one element while a seat is looked for

	mu    sync.Mutex
	seat  *seat      // the child whose worker ID is used
	still *stillness // of the child that may be taken over; only with turn
}

// OpenLeaf returns a registry in Java Leaf's tree of that name (leaf.name), on the
// ZooKeeper whose servers are given as host:port. It does not wait for a connection:
// what is wrong shows at the first call.
func OpenLeaf(servers []string, name string, opts *Options) (*Leaf, error) {
	o := opts.withDefaults()
	address, err := o.address()
	if err != nil {
		return nil, fmt.Errorf("open zookeeper registry: %w", err)
	}
	nodes, err := newBackend(servers, name, o)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	clock := worker.NewClockFrom(o.Now, func() time.Duration { return time.Since(start) })
	db := kv.New(nodes, &kv.Options{Create: true})
	return &Leaf{Registry: db.Registry(), db: db, nodes: nodes, logger: o.Logger, clock: clock, address: address, opts: o,
		writer: worker.NewInstance().String(), turn: make(chan struct{}, 1)}, nil
}

// Load returns the record in the cell of a worker. It fails with an error that wraps
// [worker.ErrTaken] if the worker ID was assigned and then used by somebody else.
func (l *Leaf) Load(ctx context.Context, id int64) (worker.Record, error) {
	if err := l.taken(id); err != nil {
		return worker.Record{}, fmt.Errorf("load record of worker %d: %w", id, err)
	}
	return l.Registry.Load(ctx, id)
}

// Swap writes new into the cell if that holds old. It sends the write once. It fails
// as Load does, and likewise for the record of a holder if the worker ID is not the
// one that was assigned, or that the process before left behind. With such a record
// the uploads to Java Leaf's tree begin.
func (l *Leaf) Swap(ctx context.Context, old, new worker.Record) error {
	var s *seat
	err := l.taken(old.Worker)
	if err == nil && new.Held() {
		s, err = l.occupy(ctx, new.Worker)
	}
	if err != nil {
		return fmt.Errorf("swap record of worker %d: %w", old.Worker, err)
	}
	if err := l.Registry.Swap(ctx, old, new); err != nil {
		return err
	}
	if s != nil {
		s.leaseOnce.Do(func() { close(s.leased) })
	}
	return nil
}

// Watch returns a channel that is closed when somebody else has written the cell of a
// worker, when somebody else uses its worker ID, and when ctx or the registry has
// ended. It is for the holder, and fails as Swap does.
func (l *Leaf) Watch(ctx context.Context, id int64) (<-chan struct{}, error) {
	s, err := l.occupy(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("watch record of worker %d: %w", id, err)
	}
	return l.nodes.watch(ctx, fmt.Sprintf("workers/%d", id), s.lost)
}

// Close ends the connection.
func (l *Leaf) Close() error { return l.db.Close() }

func (l *Leaf) assigned() *seat {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seat
}

// taken returns why worker ID id is no longer this server's.
func (l *Leaf) taken(id int64) error {
	if s := l.assigned(); s != nil && s.id == id {
		return s.err()
	}
	return nil
}

// A seat is a child of ours while this registry uses its worker ID.
type seat struct {
	name   string
	id     int64
	lost   chan struct{} // closed when somebody else uses it; why is set before
	leased chan struct{} // closed when its lease is held

	leaseOnce sync.Once
	why       error
}

func (s *seat) err() error {
	select {
	case <-s.lost:
		return s.why
	default:
		return nil
	}
}

// Assign returns the worker ID of this server: the number of the highest of its
// children in Java Leaf's tree, which it makes where there is none. As long as nobody
// else writes to that child, further calls return the same.
//
// A child that this program did not write last is taken over only after nobody has
// written to it for a while ([Options].StandStill): until then calls fail, and say until
// when. If somebody does write, the error wraps [worker.ErrTaken].
func (l *Leaf) Assign(ctx context.Context, max int64) (int64, error) {
	s, err := l.assign(ctx, max)
	if err != nil {
		return 0, fmt.Errorf("assign worker ID in %s: %w", l.nodes.forever(), err)
	}
	return s.id, nil
}

func (l *Leaf) assign(ctx context.Context, max int64) (*seat, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	if s := l.assigned(); s != nil && s.err() == nil {
		if s.id > max {
			return nil, l.runOut(s.id, max)
		}
		return s, ctx.Err()
	}
	c, err := l.choose(ctx, max)
	if err != nil {
		return nil, err
	}
	return l.sit(c)
}

// sit has this server use the worker ID of c from now on.
func (l *Leaf) sit(c child) (*seat, error) {
	s := &seat{name: c.name, id: c.id, lost: make(chan struct{}), leased: make(chan struct{})}
	l.mu.Lock()
	l.seat, l.still = s, nil
	l.mu.Unlock()
	if !l.nodes.client.spawn(func() { l.guard(s, c) }) {
		return nil, leaf.ErrClosed
	}
	l.logger.Info("worker ID assigned by zookeeper", "worker", s.id, "node", l.child(s.name))
	return s, nil
}

// occupy returns the seat of worker ID id. Where nothing was assigned yet, it is the
// one of the process before, whose lease this one goes on with: it is this server's as
// long as nobody else wrote to its child since.
func (l *Leaf) occupy(ctx context.Context, id int64) (*seat, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	if err := l.taken(id); err != nil {
		return nil, err
	}
	if s := l.assigned(); s != nil && s.err() == nil {
		if s.id != id {
			return nil, fmt.Errorf("%w: the one that is assigned to this server is %d", worker.ErrTaken, s.id)
		}
		return s, nil
	}
	c, err := call(ctx, l.nodes.client, func(conn *zk.Conn) (child, error) {
		if _, err := conn.Sync(l.nodes.forever()); err != nil {
			return child{}, err
		}
		c, err := l.inspect(conn, fmt.Sprintf("%s-%0*d", l.address, suffixDigits, id), id)
		switch {
		case errors.Is(err, errGone):
			return c, fmt.Errorf("%w: %s has no node of this server, %s, with that number", worker.ErrTaken, l.nodes.forever(), l.address)
		case err == nil && !c.ours():
			err = l.takenBy(c.name)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return l.sit(c)
}

// lock has one Assign work at a time.
func (l *Leaf) lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Leaf) unlock() { <-l.turn }

// stillness is since when nobody has written to a child.
type stillness struct {
	child child
	since time.Time
}

// checkStill fails as long as somebody else may still write to c: until nobody has for
// a while. Each call looks once.
func (l *Leaf) checkStill(c child) error {
	before := l.still
	if before == nil || before.child.name != c.name || !before.child.same(c) {
		l.still = &stillness{c, time.Now()}
		if before != nil && before.child.name == c.name {
			return l.takenBy(c.name)
		}
	}
	until := l.still.since.Add(l.opts.StandStill)
	if time.Now().Before(until) {
		return fmt.Errorf("%w: another server with the address %s wrote to %s last and may still run: waiting for %v without a write, until %s",
			worker.ErrWaiting, l.address, c.name, l.opts.StandStill, until.Format(time.TimeOnly))
	}
	return l.checkClock(c)
}

// checkClock refuses to begin while the server before may have issued times that are
// still to come: one of Java Leaf leaves no other trace of them than its uploads.
func (l *Leaf) checkClock(c child) error {
	ahead := time.Duration(c.time-l.opts.Now().UnixMilli())*time.Millisecond + l.opts.UploadEvery
	if ahead <= 0 {
		return nil
	}
	return fmt.Errorf("%w: the server before this one at %s may have used times up to %v ahead of this machine's clock: "+
		"correct the clock or wait", leaf.ErrClock, l.address, ahead)
}

func (l *Leaf) takenBy(name string) error {
	return fmt.Errorf("%w: another server with the address %s writes to %s: stop it, or give this one another address "+
		"(leaf.snowflake.port, or its IP)", worker.ErrTaken, l.address, l.child(name))
}

func (l *Leaf) runOut(id, max int64) error {
	return fmt.Errorf("worker IDs have run out: the next one is %d, the largest is %d, and Java Leaf uses none again. "+
		"Keep the address of a server when it is replaced; to begin anew, stop all servers and delete %s, or change to "+
		"layout=pool once no server of Java Leaf is left", id, max, l.nodes.forever())
}
