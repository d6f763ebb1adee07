package mysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry   = (*Nodes)(nil)
	_ worker.Disposable = (*Nodes)(nil)
)

// A Node is what a row of WORKER_NODE says about the process that adds it.
type Node struct {
	Host      string // at most 64 bytes
	Port      string // at most 64 bytes
	Container bool
}

// NodesOptions are the optional settings of [Nodes]; nil means all defaults.
type NodesOptions struct {
	Options

	// Node is this process. Without its host and port no worker ID is assigned.
	Node Node

	// Memory remembers over restarts which worker IDs this machine was dealt, so that a
	// table that has lost rows is noticed; nil: nothing does.
	Memory segment.Memory
}

// Nodes deals worker IDs from the table WORKER_NODE of uid-generator: each process adds
// one row, whose generated ID is its worker ID. It is a [worker.Registry] and a
// [worker.Disposable]. The records of leases have no place in that table and live in
// this process alone, as no other process has its worker ID. Once one is assigned the
// database is not needed any more. Its methods are safe for concurrent use.
type Nodes struct {
	dialect nodeDialect
	node    Node
	memory  segment.Memory
	logger  *slog.Logger
	closed  atomic.Bool

	assign sync.Mutex // held by an Assign: one row is added, not two

	mu     sync.Mutex
	dealt  bool          // a row was added
	fault  error         // why its ID must not be used
	record worker.Record // of that ID
	supply worker.Supply
	warned bool
}

// A nodeDialect is what differs between databases.
type nodeDialect interface {
	// insert adds a row, once, and returns its ID. After an error nobody knows whether
	// there is a row.
	insert(ctx context.Context, n Node, date string) (int64, error)

	latest(ctx context.Context, n int) ([]worker.Start, error) // by ID, the last one first
	Clock(ctx context.Context) (time.Time, error)
	Forgetful(ctx context.Context) (bool, error)
	Explain(err error) error
	Close() error
}

func newNodes(d nodeDialect, opts *NodesOptions) *Nodes {
	return &Nodes{dialect: d, node: opts.Node, memory: opts.Memory, logger: opts.logger()}
}

// orNone returns the options, which are never nil then.
func (o *NodesOptions) orNone() *NodesOptions {
	if o == nil {
		return &NodesOptions{}
	}
	return o
}

// nodeTag is what the memory has the worker IDs under.
const nodeTag = "WORKER_NODE"

// Types of rows.
const (
	nodeContainer = 1
	nodeActual    = 2
)

func (n Node) kind() int64 {
	if n.Container {
		return nodeContainer
	}
	return nodeActual
}

func kindName(kind int64) string {
	switch kind {
	case nodeContainer:
		return "container"
	case nodeActual:
		return "actual"
	}
	return fmt.Sprintf("type %d", kind)
}

// Assign returns the worker ID of this process. The first call adds a row; if it fails
// the next one adds another, since a row whose ID was not heard of is nobody's: its host
// and port may be another's too. The error wraps [leaf.ErrOverflow] if the ID is above
// limit, so that the layout has no start left, and [leaf.ErrRegression] if the table has
// lost rows.
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
	if n.fault != nil {
		return 0, n.fault
	}
	if n.record.Worker > limit {
		return 0, usedUp(n.record.Worker, limit)
	}
	return n.record.Worker, nil
}

func usedUp(id, limit int64) error {
	return fmt.Errorf("%w: WORKER_NODE has dealt worker ID %d, and the layout has %d starts, one for each of its worker IDs 1 … %d: "+
		"give the layout more worker bits (uid.worker_bits, with fewer time_bits or seq_bits), or lease worker IDs, which are used again (--workers without layout=worker_node); for either stop all servers first (docs/uid-mode.md)",
		leaf.ErrOverflow, id, limit, limit)
}

// deal adds the row of this process.
func (n *Nodes) deal(ctx context.Context, limit int64) error {
	if n.node.Host == "" || n.node.Port == "" {
		return fmt.Errorf("%w: no host and port are known for the row of this process", leaf.ErrInvalid)
	}
	before, err := n.latest(ctx, 1)
	if err != nil {
		return err
	}
	used := int64(0)
	if len(before) > 0 {
		used = before[0].Worker
	}
	if err := n.checkLost(used); err != nil {
		return err
	}
	if used >= limit {
		return usedUp(used, limit)
	}
	id, err := n.dialect.insert(ctx, n.node, time.Now().Format(time.DateOnly))
	if err != nil {
		return err
	}
	fault := nodeFault(id, used)
	n.mu.Lock()
	n.dealt, n.fault, n.record = true, fault, worker.Record{Worker: id}
	n.mu.Unlock()
	if fault != nil {
		return nil // told each time
	}
	n.heard(id)
	n.remember(id)
	if forgets, err := n.dialect.Forgetful(ctx); forgets || err != nil {
		n.logger.Warn("the database may lose rows of WORKER_NODE that it has acknowledged, by a fail-over for example: it would deal their worker IDs again, "+
			"and nobody would notice; leases of worker IDs stand that better", "err", err)
	}
	return nil
}

// nodeFault reports an ID that was given to a row although a higher one had been dealt
// before, or none at all: other processes may have been given it too.
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
	if n.memory == nil {
		return nil
	}
	for _, mark := range n.memory.Recall(nodeTag) {
		if known := mark.High - 1; known > used {
			return fmt.Errorf("%w: the highest ID in WORKER_NODE is %d, but this machine was dealt worker ID %d: the table has lost rows "+
				"(a fail-over, a restored backup, a DELETE) and would deal worker IDs again that are in use: add a row whose ID is above all that were ever dealt, and start again",
				leaf.ErrRegression, used, known)
		}
	}
	return nil
}

func (n *Nodes) remember(id int64) {
	if n.memory == nil {
		return
	}
	if err := n.memory.Remember(nodeTag, "", segment.Mark{High: id + 1}); err != nil {
		n.logger.Warn("the worker ID is not remembered: a table that loses its row will not be noticed here", "worker", id, "err", err)
	}
}

// heard notes that a worker ID was dealt, and warns once when few are left.
func (n *Nodes) heard(id int64) {
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

// latest asks for the latest rows, and notes what they tell.
func (n *Nodes) latest(ctx context.Context, count int) ([]worker.Start, error) {
	starts, err := n.dialect.latest(ctx, count)
	if err == nil && len(starts) > 0 {
		n.heard(starts[0].Worker)
	}
	return starts, err
}

// Starts returns the latest rows, at most count, the last one first.
func (n *Nodes) Starts(ctx context.Context, count int) ([]worker.Start, error) {
	var starts []worker.Start
	err := n.call(ctx, func() (err error) {
		starts, err = n.latest(ctx, count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the rows of WORKER_NODE: %w", err)
	}
	return starts, nil
}

// Supply returns how many worker IDs were dealt, as it was last heard.
func (n *Nodes) Supply() worker.Supply {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.supply
}

// Load returns the record of the worker ID of this process, a zero one for others.
func (n *Nodes) Load(ctx context.Context, id int64) (worker.Record, error) {
	if err := n.usable(ctx); err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.dealt || id != n.record.Worker {
		return worker.Record{Worker: id}, nil
	}
	return n.record, nil
}

// Swap replaces the record of the worker ID of this process.
func (n *Nodes) Swap(ctx context.Context, old, new worker.Record) error {
	if err := n.usable(ctx); err != nil {
		return fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.dealt || old.Worker != n.record.Worker || new.Worker != n.record.Worker {
		return fmt.Errorf("swap worker %d: %w: it is not the worker ID of this process", new.Worker, leaf.ErrInvalid)
	}
	if !n.record.Equal(old) {
		return fmt.Errorf("swap worker %d: %w", new.Worker, worker.ErrConflict)
	}
	n.record = new
	return nil
}

// List returns the record of the worker ID of this process, if it was written.
func (n *Nodes) List(ctx context.Context) ([]worker.Record, error) {
	if err := n.usable(ctx); err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.record.IsZero() {
		return nil, nil
	}
	return []worker.Record{n.record}, nil
}

// clockPatience bounds the wait for the database's time where it can be done without.
const clockPatience = time.Second

// Clock returns the database's time. Once a worker ID is assigned and the database does
// not answer, and always for SQLite, it is the zero Time: this machine's clock counts.
func (n *Nodes) Clock(ctx context.Context) (time.Time, error) {
	n.mu.Lock()
	dealt := n.dealt
	n.mu.Unlock()
	if dealt {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, clockPatience)
		defer cancel()
	}
	var now time.Time
	err := n.call(ctx, func() (err error) {
		if _, err = n.latest(ctx, 1); err == nil {
			now, err = n.dialect.Clock(ctx)
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
	if n.closed.Swap(true) {
		return nil
	}
	if err := n.dialect.Close(); err != nil {
		return fmt.Errorf("close registry: %w", err)
	}
	return nil
}

func (n *Nodes) call(ctx context.Context, do func() error) error {
	return sqlstore.Attempt(ctx, &n.closed, n.dialect.Explain, do)
}

func (n *Nodes) usable(ctx context.Context) error {
	return n.call(ctx, func() error { return nil })
}
