package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry = (*Registry)(nil)
	_ worker.Watcher  = (*Registry)(nil)
)

// A Registry keeps the records of workers in memory. It is a [worker.Registry] and a
// [worker.Watcher], and serves leases among the nodes of one process. Its methods
// are safe for concurrent use.
type Registry struct {
	now atomic.Pointer[func() time.Time] // nil: the clock of this machine

	mu    sync.Mutex
	cells map[int64]worker.Record
	wrote map[int64]chan struct{} // closed at the next write, by worker; only where somebody watches
}

// NewRegistry returns a Registry without any record, whose clock is this machine's.
func NewRegistry() *Registry {
	return &Registry{cells: make(map[int64]worker.Record), wrote: make(map[int64]chan struct{})}
}

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	if err := check(ctx, id); err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load(id), nil
}

// Swap writes new in the place of old.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) error {
	if err := r.swap(ctx, old, new); err != nil {
		return fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	return nil
}

func (r *Registry) swap(ctx context.Context, old, new worker.Record) error {
	if err := check(ctx, new.Worker); err != nil {
		return err
	}
	if old.Worker != new.Worker {
		return fmt.Errorf("%w: the old record is of worker %d", leaf.ErrInvalid, old.Worker)
	}
	if new.IsZero() {
		return fmt.Errorf("%w: the new record is empty", leaf.ErrInvalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.load(old.Worker).Equal(old) {
		return worker.ErrConflict
	}
	r.cells[new.Worker] = clone(new)
	r.notify(new.Worker)
	return nil
}

// List returns all records, by worker ID.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return r.Snapshot(), nil
}

// Clock returns the zero Time, or what [Registry.SetClock] gave.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("ask the registry's clock: %w", err)
	}
	if now := r.now.Load(); now != nil {
		return (*now)(), nil
	}
	return time.Time{}, nil
}

// SetClock gives the registry a clock of its own; nil takes it away.
func (r *Registry) SetClock(now func() time.Time) {
	if now == nil {
		r.now.Store(nil)
		return
	}
	r.now.Store(&now)
}

// Watch returns a channel that is closed when the record of a worker is next written,
// by anybody.
func (r *Registry) Watch(ctx context.Context, id int64) (<-chan struct{}, error) {
	if err := check(ctx, id); err != nil {
		return nil, fmt.Errorf("watch worker %d: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	wrote, ok := r.wrote[id]
	if !ok {
		wrote = make(chan struct{})
		r.wrote[id] = wrote
	}
	return wrote, nil
}

// Snapshot returns a copy of all records, by worker ID, for [Registry.Restore].
func (r *Registry) Snapshot() []worker.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]worker.Record, 0, len(r.cells))
	for _, record := range r.cells {
		all = append(all, clone(record))
	}
	slices.SortFunc(all, func(a, b worker.Record) int { return cmp.Compare(a.Worker, b.Worker) })
	return all
}

// Restore replaces all records, as a backup does that is put in place: writes since
// are lost, cells created since are empty again. It is for tests.
func (r *Registry) Restore(snapshot []worker.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.cells
	r.cells = make(map[int64]worker.Record, len(snapshot))
	for _, record := range snapshot {
		r.cells[record.Worker] = clone(record)
	}
	for id := range r.wrote {
		if !was[id].Equal(r.cells[id]) {
			r.notify(id)
		}
	}
}

// load returns what a cell holds; r.mu is held.
func (r *Registry) load(id int64) worker.Record {
	if record, ok := r.cells[id]; ok {
		return clone(record)
	}
	return worker.Record{Worker: id}
}

// notify wakes those who watch; r.mu is held.
func (r *Registry) notify(id int64) {
	if wrote, ok := r.wrote[id]; ok {
		close(wrote)
		delete(r.wrote, id)
	}
}

func check(ctx context.Context, id int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if id < 0 {
		return fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
	}
	return nil
}

// clone returns a record that shares nothing with r.
func clone(r worker.Record) worker.Record {
	r.Layouts = slices.Clone(r.Layouts)
	return r
}
