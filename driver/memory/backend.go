package memory

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
)

var (
	_ kv.Backend = (*Backend)(nil)
	_ kv.Watcher = (*Backend)(nil)
)

// A Backend keeps cells in memory. It is a [kv.Backend] and a [kv.Watcher]. Its methods
// are safe for concurrent use.
type Backend struct {
	mu     sync.Mutex
	now    func() time.Time // nil: the clock of this machine
	cells  map[kv.Key]kv.Cell
	writes int64
	wrote  map[kv.Key]chan struct{} // closed at the next write; only where a caller watches
}

// NewBackend returns a Backend without any cell, whose clock is this machine's.
func NewBackend() *Backend {
	return &Backend{cells: make(map[kv.Key]kv.Cell), wrote: make(map[kv.Key]chan struct{})}
}

// Get returns the cell of a key.
func (b *Backend) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	if err := ctx.Err(); err != nil {
		return kv.Cell{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.get(key), nil
}

func (b *Backend) get(key kv.Key) kv.Cell {
	c := b.cells[key]
	c.Key = key
	return c
}

// Swap has the cell hold value if its version is old's.
func (b *Backend) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	if err := ctx.Err(); err != nil {
		return kv.Cell{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.get(old.Key); now.Version != old.Version {
		return now, kv.ErrConflict
	}
	b.writes++
	b.cells[old.Key] = kv.Cell{Key: old.Key, Value: value, Version: strconv.FormatInt(b.writes, 10)}
	b.notify(old.Key)
	return b.get(old.Key), nil
}

// List yields the cells of a kind, by name, as they are when it begins.
func (b *Backend) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		var cells []kv.Cell
		b.mu.Lock()
		for key, cell := range b.cells {
			if key.Kind == kind {
				cells = append(cells, cell)
			}
		}
		b.mu.Unlock()
		slices.SortFunc(cells, func(x, y kv.Cell) int { return strings.Compare(x.Key.Name, y.Key.Name) })
		for _, cell := range cells {
			if err := ctx.Err(); err != nil {
				yield(kv.Cell{}, err)
				return
			}
			if !yield(cell, nil) {
				return
			}
		}
	}
}

// Clock returns the zero Time, or what [Backend.SetClock] gave.
func (b *Backend) Clock(ctx context.Context) (time.Time, error) {
	b.mu.Lock()
	now := b.now
	b.mu.Unlock()
	if now == nil || ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	return now(), nil
}

// SetClock gives the backend a clock of its own; nil takes it away.
func (b *Backend) SetClock(now func() time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}

// Watch returns a channel that closes at the next write to a cell.
func (b *Backend) Watch(ctx context.Context, key kv.Key) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wrote, ok := b.wrote[key]
	if !ok {
		wrote = make(chan struct{})
		b.wrote[key] = wrote
	}
	return wrote, nil
}

// notify wakes the watchers of a key; b.mu is held.
func (b *Backend) notify(key kv.Key) {
	if wrote, ok := b.wrote[key]; ok {
		close(wrote)
		delete(b.wrote, key)
	}
}

// A Snapshot is all cells at one time, by key.
type Snapshot map[kv.Key]kv.Cell

// Snapshot returns a copy of all cells, for [Backend.Restore].
func (b *Backend) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.cells)
}

// Restore replaces all cells, like a restored backup: later writes are lost, and later cells are
// empty again. It is for tests.
func (b *Backend) Restore(snapshot Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.cells
	b.cells = maps.Clone(map[kv.Key]kv.Cell(snapshot))
	for key := range b.wrote {
		if was[key] != b.cells[key] {
			b.notify(key)
		}
	}
}

// Close does nothing: the cells live as long as the Backend.
func (b *Backend) Close() error { return nil }
