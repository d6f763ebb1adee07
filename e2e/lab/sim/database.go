package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// A database is the memory that all processes reach, each through a [port].
type database struct {
	w       *world
	cells   *memory.Backend
	down    atomic.Bool  // it does not answer
	weather atomic.Int64 // of a thousand calls, so many go wrong
	slow    atomic.Int64 // nanoseconds that a call may take in each direction

	lossy bool // it fails over, and may lose writes

	skew      atomic.Int64 // nanoseconds that its clock is ahead; see newLossWorld
	unnamed   bool         // no incarnation of it is known
	untracked bool         // others may answer within one incarnation
	nameless  bool         // a write does not ask which server it meets

	mu       sync.RWMutex // held for writing during a fail-over
	stalled  *stall       // nil: writes are answered
	epoch    int          // counts the fail-overs
	renamed  int          // so many of them left the incarnation's name as it was
	since    time.Time    // of the last one
	replica  memory.Snapshot
	caughtUp int                  // the epoch that the replica has seen
	written  map[kv.Key]time.Time // when cells were; for a saboteur
}

func newDatabase(w *world) *database {
	d := &database{w: w, cells: memory.NewBackend(), written: map[kv.Key]time.Time{}}
	d.slow.Store(int64(2 * time.Millisecond))
	return d
}

// replicate has the replica catch up.
func (d *database) replicate() { d.replica, d.caughtUp = d.cells.Snapshot(), d.epoch }

// failOver has the replica take over, without the writes since it caught up.
func (d *database) failOver() {
	d.w.note("the replica takes over; what was written since it caught up is lost")
	d.takeOver(d.replica)
}

// takeOver starts another epoch with a server's data.
func (d *database) takeOver(has memory.Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.epoch++
	d.since = time.Now()
	d.cells.Restore(has)
}

// takenOver is when the last fail-over was.
func (d *database) takenOver() time.Time {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.since
}

func (d *database) server() string {
	if !d.lossy || d.nameless {
		return ""
	}
	return fmt.Sprintf("server %d", d.epoch)
}

// A direct is the database without a network.
type direct struct {
	*memory.Backend
	d *database
}

func (d direct) Get(ctx context.Context, key kv.Key) (kv.Cell, error) { return d.d.get(ctx, key) }

func (d direct) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	return d.d.swap(ctx, old, value)
}

// A port is the database as one process sees it, a [kv.Backend].
type port struct {
	p  *process
	db *database
}

// fault is what happens to one call.
type fault struct {
	there, back time.Duration
	kind        faultKind
	hang        bool // no error comes, only the caller's deadline
	late        time.Duration
}

type faultKind int

const (
	none      faultKind = iota
	lost                // the request never arrives
	late                // it arrives after the caller gave up
	replyLost           // it arrives, the answer does not
	numFaults
)

func (b *port) draw() (f fault) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	rng := b.p.rng
	slow := b.db.slow.Load()
	f.there, f.back = time.Duration(rng.Int64N(slow)), time.Duration(rng.Int64N(slow))
	wrong := rng.Int64N(1000) < b.db.weather.Load() && !b.p.mustHear()
	kind := faultKind(1 + rng.IntN(int(numFaults)-1))
	f.hang = rng.IntN(4) == 0
	f.late = lateness(rng)
	if wrong {
		f.kind = kind
		b.p.w.faults.Add(1)
	}
	return f
}

// lateness is mostly short, and sometimes longer than any lease.
func lateness(rng *rand.Rand) time.Duration {
	return time.Duration(rng.Int64N(int64(20*time.Millisecond) << rng.IntN(12)))
}

var errNetwork = errors.New("the network is down")

// call makes a call of the database and applies its fault.
func (b *port) call(ctx context.Context, write bool, do func() error) error {
	pauseAfter := b.p.countDown()
	f := b.draw()
	if err := b.travel(ctx, f.there); err != nil {
		return err
	}
	switch {
	case b.db.down.Load(), b.p.cutOff(), f.kind == lost, f.kind == late && !write:
		return b.broken(ctx, f)
	case f.kind == late:
		b.p.w.background.Go(func() {
			time.Sleep(f.late)
			_ = do()
		})
		return b.broken(ctx, f)
	}
	err := do()
	if f.kind == replyLost {
		return b.broken(ctx, f)
	}
	if terr := b.travel(ctx, f.back); terr != nil {
		return terr
	}
	if pauseAfter {
		b.p.pause()
		return cmp.Or(b.p.await(), err)
	}
	return err
}

func (b *port) epoch() int {
	b.db.mu.RLock()
	defer b.db.mu.RUnlock()
	return b.db.epoch
}

// travel waits until a message has arrived.
func (b *port) travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.p.dead:
		return errDead
	}
	return b.p.await()
}

// broken is how a caller hears of a broken connection, or does not.
func (b *port) broken(ctx context.Context, f fault) error {
	if !f.hang {
		return errNetwork
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.p.dead:
		return errDead
	case <-time.After(time.Minute):
		return errNetwork
	}
}

// Get returns the cell of a key.
func (b *port) Get(ctx context.Context, key kv.Key) (cell kv.Cell, err error) {
	err = b.call(ctx, false, func() (err error) {
		b.db.mu.RLock()
		defer b.db.mu.RUnlock()
		cell, err = b.db.get(ctx, key)
		return err
	})
	return cell, err
}

func (d *database) get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	cell, err := d.cells.Get(ctx, key)
	cell.Server = d.server()
	return cell, err
}

// Swap writes an unchanged cell. A request on its way arrives even when its sender has left.
func (b *port) Swap(ctx context.Context, old kv.Cell, value string) (now kv.Cell, err error) {
	got := make(chan kv.Cell, 1) // a request that arrives late has no reader
	err = b.call(ctx, true, func() error {
		cell, stalled, err := b.db.write(ctx, old, value)
		got <- cell
		if err != nil {
			return err
		}
		return stalled.await(ctx, b.p)
	})
	if err != nil && !errors.Is(err, kv.ErrConflict) {
		return kv.Cell{}, err
	}
	return <-got, err
}

// write swaps a cell. The write is answered once it is synced, a conflict at once.
func (d *database) write(ctx context.Context, old kv.Cell, value string) (kv.Cell, *stall, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	cell, err := d.swap(context.WithoutCancel(ctx), old, value)
	return cell, d.stalled, err
}

func (d *database) swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	if old.Server != "" && old.Server != d.server() {
		return kv.Cell{}, kv.ErrConflict
	}
	cell, err := d.cells.Swap(ctx, old, value)
	cell.Server = d.server()
	return cell, err
}

// List yields cells as they are when the request arrives.
func (b *port) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		var cells []kv.Cell
		err := b.call(ctx, false, func() error {
			b.db.mu.RLock()
			defer b.db.mu.RUnlock()
			for cell, err := range b.db.cells.List(ctx, kind) {
				if err != nil {
					return err
				}
				cell.Server = b.db.server()
				cells = append(cells, cell)
			}
			return nil
		})
		if err != nil {
			yield(kv.Cell{}, err)
			return
		}
		for _, cell := range cells {
			if !yield(cell, nil) {
				return
			}
		}
	}
}

// Clock is the database's.
func (b *port) Clock(ctx context.Context) (now time.Time, err error) {
	err = b.call(ctx, false, func() (err error) {
		now, err = b.db.cells.Clock(ctx)
		return err
	})
	return now, err
}

// ServerEpoch returns which server answers.
func (b *port) ServerEpoch(ctx context.Context) (epoch worker.ServerEpoch, err error) {
	if !b.db.lossy {
		return worker.ServerEpoch{}, nil
	}
	err = b.call(ctx, false, func() error {
		b.db.mu.RLock()
		defer b.db.mu.RUnlock()
		epoch = worker.ServerEpoch{Lossy: true, Untracked: b.db.untracked}
		if !b.db.unnamed {
			epoch.Incarnation = b.db.incarnation()
		}
		return nil
	})
	return epoch, err
}

// incarnation names the epoch.
func (d *database) incarnation() string {
	if d.w.sabotaged("W9 name") {
		return fmt.Sprint("epoch ", d.epoch%2)
	}
	return fmt.Sprint("epoch ", d.epoch-d.renamed)
}

// Close does nothing.
func (b *port) Close() error { return nil }

// String is the database's name.
func (b *port) String() string { return strings.TrimSpace("the database " + b.db.server()) }
