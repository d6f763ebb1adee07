package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry   = (*Nodes)(nil)
	_ worker.Disposable = (*Nodes)(nil)
)

// A Node is a process's description in its row of WORKER_NODE.
type Node struct {
	Host      string // at most 64 bytes
	Port      string // at most 64 bytes
	Container bool
}

// NodesOptions are the optional settings of [Nodes]; nil means all defaults.
type NodesOptions struct {
	sqldb.Options

	// Node is this process. Without its host and port no worker ID is assigned.
	Node Node

	// Memory remembers this machine's worker IDs over restarts, so that a start notices a table
	// with lost rows; nil: no memory.
	Memory segment.Memory
}

// Nodes deals worker IDs from the table WORKER_NODE of uid-generator: each process adds one row,
// whose generated ID is its worker ID. It is a [worker.Registry] and a [worker.Disposable]. The
// records of leases have no place in that table and live in this process alone, as no other process
// has its worker ID. Only their layouts are in the database, in the table leaf_layout, which the
// first start creates. Once a worker ID is assigned and its layouts are recorded the database is
// not needed any more. Its methods are safe for concurrent use.
type Nodes struct {
	table  nodeStore
	opts   NodesOptions
	logger *slog.Logger
	closed atomic.Bool

	assign sync.Mutex // held by an Assign: one row is added, not two

	mu     sync.Mutex
	dealt  bool                  // a row was added
	fault  error                 // why its ID must not be used
	record worker.Record         // of that ID
	kept   []worker.ServedLayout // its recorded layouts
	supply worker.Supply
	warned bool
}

// A nodeStore is the table WORKER_NODE.
type nodeStore interface {
	create(ctx context.Context) error
	Exists(ctx context.Context) (bool, error)

	// insert adds a row, once, and returns its ID. After an error the row may or may not exist.
	insert(ctx context.Context, n Node, date string) (int64, error)

	latest(ctx context.Context, n int) ([]worker.Start, error) // by ID, the last one first
	layouts(ctx context.Context) ([]worker.Record, error)
	keep(ctx context.Context, id int64, layouts []worker.ServedLayout) error
	clock(ctx context.Context) (time.Time, error)
	ServerEpoch(ctx context.Context) (worker.ServerEpoch, error)
	Explain(err error) error
}

// NewNodes returns the worker IDs that the MySQL or MariaDB database db deals, opened as for [New].
// The table may be that of uid-generator itself. It does not connect.
func NewNodes(db *sql.DB, opts *NodesOptions) (*Nodes, error) {
	if db == nil {
		return nil, fmt.Errorf("open mysql nodes: %w: no database", leaf.ErrInvalid)
	}
	if opts == nil {
		opts = &NodesOptions{}
	}
	return newNodes(newNodeRows(db, &opts.Options), opts), nil
}

func newNodes(t nodeStore, opts *NodesOptions) *Nodes {
	return &Nodes{table: t, opts: *opts, logger: opts.Options.WithDefaults().Logger}
}

// Init creates the table WORKER_NODE, and leaf_layout next to it. If WORKER_NODE exists, the error
// wraps [io/fs.ErrExist].
func (n *Nodes) Init(ctx context.Context) error {
	if err := n.call(ctx, func() error { return n.table.create(ctx) }); err != nil {
		return fmt.Errorf("init mysql nodes: %w", err)
	}
	return nil
}

// Exists reports whether the database has a table WORKER_NODE.
func (n *Nodes) Exists(ctx context.Context) (exists bool, err error) {
	err = n.call(ctx, func() (err error) {
		exists, err = n.table.Exists(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for the mysql nodes: %w", err)
	}
	return exists, nil
}

// nodeTag is the name of the worker IDs in the memory.
const nodeTag = "WORKER_NODE"

// Assign returns the worker ID of this process. The first call adds a row; if it fails the next one
// adds another, since a row whose ID did not arrive cannot be found: its host and port may be
// another's too. The error wraps [worker.ErrUsedUp] if the ID is above limit, so that the layout
// has no start left, and [leaf.ErrRegression] if the table has lost rows.
func (n *Nodes) Assign(ctx context.Context, limit int64) (int64, error) {
	n.assign.Lock()
	defer n.assign.Unlock()
	n.mu.Lock()
	n.supply.Max = limit
	dealt := n.dealt
	n.mu.Unlock()
	if !dealt {
		if err := n.call(ctx, func() error { return n.deal(ctx, limit) }); err != nil {
			return 0, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.fault != nil:
		return 0, n.fault
	case n.record.Worker > limit:
		return 0, usedUp(n.record.Worker, limit)
	}
	return n.record.Worker, nil
}

func usedUp(id, limit int64) error {
	return fmt.Errorf("%w: WORKER_NODE has dealt worker ID %d, and the layout has %d starts, one for each of its worker IDs 1 … %d: "+
		"give the layout more worker bits, or lease worker IDs, which are used again; for either stop all servers first",
		worker.ErrUsedUp, id, limit, limit)
}

// deal adds the row of this process.
func (n *Nodes) deal(ctx context.Context, limit int64) error {
	if n.opts.Node.Host == "" || n.opts.Node.Port == "" {
		return fmt.Errorf("%w: no host and port are known for the row of this process", leaf.ErrInvalid)
	}
	used := int64(0)
	before, err := n.latest(ctx, 1)
	if err != nil {
		return err
	}
	if len(before) > 0 {
		used = before[0].Worker
	}
	if err := n.checkLost(used); err != nil {
		return err
	}
	if used >= limit {
		return usedUp(used, limit)
	}
	id, err := n.table.insert(ctx, n.opts.Node, time.Now().Format(time.DateOnly))
	if err != nil {
		return err
	}
	fault := nodeFault(id, used)
	n.mu.Lock()
	n.dealt, n.fault, n.record = true, fault, worker.Record{Worker: id}
	n.mu.Unlock()
	if fault == nil { // a fault is reported each time
		n.note(id)
		n.remember(ctx, id)
	}
	return nil
}

// nodeFault reports an invalid ID: none, or one below an earlier ID, which other processes may have
// too.
func nodeFault(id, used int64) error {
	switch {
	case id <= 0:
		return fmt.Errorf("%w: the database gave the row of this process in WORKER_NODE the ID %d: its column ID must count up by itself, from 1: "+
			"mend it and start again", leaf.ErrUnsupported, id)
	case id <= used:
		return fmt.Errorf("%w: the ID is %d, while there is a row with ID %d", errNodesBehind, id, used)
	}
	return nil
}

// checkLost reports a table that lacks a row that this machine knows of.
func (n *Nodes) checkLost(used int64) error {
	if n.opts.Memory == nil {
		return nil
	}
	for _, mark := range n.opts.Memory.Recall(nodeTag) {
		if known := mark.High - 1; known > used {
			return fmt.Errorf("%w: the highest ID in WORKER_NODE is %d, but this machine was dealt worker ID %d: the table has lost rows "+
				"(a fail-over, a restored backup, a DELETE) and would deal worker IDs again that are in use: add a row whose ID is above all that were ever dealt, and start again",
				leaf.ErrRegression, used, known)
		}
	}
	return nil
}

// remember notes the worker ID in the memory, and warns of a database that may lose it.
func (n *Nodes) remember(ctx context.Context, id int64) {
	if n.opts.Memory != nil {
		if err := n.opts.Memory.Remember(nodeTag, "", segment.Mark{High: id + 1}); err != nil {
			n.logger.Warn("the worker ID is not remembered: a table that loses its row will not be noticed here", "worker", id, "err", err)
		}
	}
	if epoch, err := n.table.ServerEpoch(ctx); epoch.Lossy || err != nil {
		n.logger.Warn("the database may lose rows of WORKER_NODE that it has acknowledged, by a fail-over for example: it would deal their worker IDs again, "+
			"and no server would notice; leases of worker IDs stand that better", "err", err)
	}
}

// note takes in that a worker ID was dealt, and warns once when few are left.
func (n *Nodes) note(id int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.supply.Used = max(n.supply.Used, id)
	left := n.supply.Left()
	if n.warned || n.supply.Max == 0 || left > n.supply.Max/10 {
		return
	}
	n.warned = true
	n.logger.Warn("few worker IDs are left in WORKER_NODE: each start of a process uses one up for ever; plan for a layout with more worker bits, or for leases",
		"used", n.supply.Used, "left", left)
}

// latest reads the latest rows, and remembers their IDs.
func (n *Nodes) latest(ctx context.Context, count int) ([]worker.Start, error) {
	starts, err := n.table.latest(ctx, count)
	if err == nil && len(starts) > 0 {
		n.note(starts[0].Worker)
	}
	return starts, err
}

// Starts returns the latest rows, at most count, the last one first.
func (n *Nodes) Starts(ctx context.Context, count int) (starts []worker.Start, err error) {
	err = n.call(ctx, func() (err error) {
		starts, err = n.latest(ctx, count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the rows of WORKER_NODE: %w", err)
	}
	return starts, nil
}

// Discard gives up the row of this process, if its ID is id: the next Assign adds another.
func (n *Nodes) Discard(id int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.record.Worker == id {
		n.dealt, n.fault, n.record = false, nil, worker.Record{}
	}
}

// Supply returns how many worker IDs were dealt, as of the last look at the table.
func (n *Nodes) Supply() worker.Supply {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.supply
}

// Load returns the record of the worker ID of this process, a zero one for others.
func (n *Nodes) Load(ctx context.Context, id int64) (record worker.Record, err error) {
	err = n.locked(ctx, func() error {
		if record = n.record; !n.dealt || id != record.Worker {
			record = worker.Record{Worker: id}
		}
		return nil
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	return record, nil
}

// Swap replaces the record of the worker ID of this process. The first Swap records the layouts
// in the database; it returns a [worker.LayoutError] if one of them has other values there.
func (n *Nodes) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	err := n.locked(ctx, func() error { return n.checkSwap(old, new) })
	if err == nil {
		err = n.keep(ctx, new)
	}
	if err == nil {
		err = n.locked(ctx, func() error {
			if err := n.checkSwap(old, new); err != nil {
				return err
			}
			n.record = new
			return nil
		})
	}
	if err != nil {
		return worker.Record{}, fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	return new, nil
}

func (n *Nodes) checkSwap(old, new worker.Record) error {
	switch {
	case !n.dealt || old.Worker != n.record.Worker || new.Worker != n.record.Worker:
		return fmt.Errorf("%w: it is not the worker ID of this process", leaf.ErrInvalid)
	case !n.record.Equal(old):
		return worker.ErrConflict
	}
	return nil
}

// keep records the layouts of r in the database, unless this process has done so.
func (n *Nodes) keep(ctx context.Context, r worker.Record) error {
	if slices.Equal(n.keptLayouts(), r.Layouts) {
		return nil
	}
	if err := n.call(ctx, func() error { return n.table.keep(ctx, r.Worker, r.Layouts) }); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = r.Layouts
	return nil
}

func (n *Nodes) keptLayouts() []worker.ServedLayout {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept
}

// List returns the record of the worker ID of this process, if it was written. Before that it
// also returns the layouts in the database, as records without a holder.
func (n *Nodes) List(ctx context.Context) (records []worker.Record, err error) {
	var others []worker.Record
	if n.keptLayouts() == nil {
		err = n.call(ctx, func() (err error) {
			others, err = n.table.layouts(ctx)
			return err
		})
	}
	if err == nil {
		err = n.locked(ctx, func() error {
			for _, r := range others {
				if !n.dealt || r.Worker != n.record.Worker {
					records = append(records, r)
				}
			}
			if !n.record.IsZero() {
				records = append(records, n.record)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return records, nil
}

// clockTimeout bounds the wait for the database's time where it can be done without.
const clockTimeout = time.Second

// Clock returns the database's time. Once a worker ID is assigned and the database does
// not answer it is the zero Time: this machine's clock counts.
func (n *Nodes) Clock(ctx context.Context) (now time.Time, err error) {
	n.mu.Lock()
	dealt := n.dealt
	n.mu.Unlock()
	if dealt {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, clockTimeout)
		defer cancel()
	}
	err = n.call(ctx, func() (err error) {
		if _, err = n.latest(ctx, 1); err == nil {
			now, err = n.table.clock(ctx)
		}
		return err
	})
	switch {
	case err == nil:
		return now, nil
	case dealt && !errors.Is(err, leaf.ErrClosed):
		return time.Time{}, nil
	}
	return time.Time{}, fmt.Errorf("ask the registry's clock: %w", err)
}

// Close ends the use of the database, which stays open: it is the caller's.
func (n *Nodes) Close() error {
	n.closed.Store(true)
	return nil
}

func (n *Nodes) call(ctx context.Context, do func() error) error {
	return sqlstore.Attempt(ctx, &n.closed, n.table.Explain, do)
}

// locked runs do, which does not ask the database, with the record.
func (n *Nodes) locked(ctx context.Context, do func() error) error {
	return n.call(ctx, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		return do()
	})
}
