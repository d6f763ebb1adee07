package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// ErrHeld is wrapped where a worker ID is not freed because it is in use.
var ErrHeld = errors.New("the worker ID is in use")

// ErrRegistry is wrapped where the registry of worker IDs cannot be asked.
var ErrRegistry = errors.New("the registry of worker IDs does not answer")

// A Keeper is the part of [worker.Keeper] that [Workers] needs.
type Keeper interface {
	Status() worker.Status
	Err() error // why no IDs can be issued at present, nil if they can
}

// noKeeper is the keeper of a process without a worker ID.
type noKeeper struct{}

func (noKeeper) Status() worker.Status { return worker.Status{Err: leaf.ErrNoLease} }
func (noKeeper) Err() error            { return leaf.ErrNoLease }

// Workers looks at, and administers, the worker IDs of one registry. Its methods are
// safe for concurrent use.
type Workers struct {
	registry worker.Registry
	keeper   Keeper
	log      *slog.Logger
	leases   leases
}

// NewWorkers returns the administration of registry. keeper is what holds a worker ID of it in this
// process, nil if nothing does. Each change is logged once to logger; nil discards.
func NewWorkers(registry worker.Registry, keeper Keeper, logger *slog.Logger) *Workers {
	w := &Workers{registry: registry, keeper: cmp.Or[Keeper](keeper, noKeeper{}), log: cmp.Or(logger, slog.New(slog.DiscardHandler))}
	w.Lease(nil)
	return w
}

// Err returns why this process can issue no IDs under a worker ID at present, nil if it can.
func (w *Workers) Err() error { return w.keeper.Err() }

// Status returns the status of this process's lease.
func (w *Workers) Status() worker.Status { return w.keeper.Status() }

// Mine reports whether this process holds the worker ID.
func (w *Workers) Mine(id int64) bool {
	s := w.Status()
	return s.Held && s.Worker == id
}

// List returns the records of all worker IDs that servers ever claimed, by number.
func (w *Workers) List(ctx context.Context) ([]worker.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	list, err := w.registry.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list worker IDs: %w", w.failed(err))
	}
	return slices.DeleteFunc(list, worker.Record.InPool), nil
}

// maxStarts bounds how many starts [Workers.Starts] lists.
const maxStarts = 100

// Starts returns the latest starts of processes, the last one first, and their number, if each
// start uses up a worker ID of its own; ok reports whether that is so.
func (w *Workers) Starts(ctx context.Context) (list []worker.Start, supply worker.Supply, ok bool, err error) {
	d, ok := w.registry.(worker.Disposable)
	if !ok {
		return nil, worker.Supply{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if list, err = d.Starts(ctx, maxStarts); err != nil {
		return nil, worker.Supply{}, true, w.failed(err)
	}
	return list, d.Supply(), true, nil
}

// Supply returns how many starts of processes have used up a worker ID, as far as
// is known without asking; ok says whether starts do.
func (w *Workers) Supply() (supply worker.Supply, ok bool) {
	d, ok := w.registry.(worker.Disposable)
	if !ok {
		return worker.Supply{}, false
	}
	return d.Supply(), true
}

// Free makes a worker ID claimable that no server holds any more, as [worker.Free] says, and
// returns its record as it then is. It wraps [leaf.ErrInvalid] for a worker ID without a claim so
// far, [ErrHeld] for that of this process, [worker.ErrConflict] if it was changed meanwhile, and
// [leaf.ErrUnsupported] where worker IDs are used once.
func (w *Workers) Free(ctx context.Context, id int64) (worker.Record, error) {
	record, err := w.free(ctx, id)
	if err != nil {
		return worker.Record{}, fmt.Errorf("free worker ID %d: %w", id, err)
	}
	audit(ctx, w.log, "worker ID freed", nil, nil, "worker", id, "owner", record.Owner, "term", record.Term, "floor", record.Horizon)
	return record, nil
}

func (w *Workers) free(ctx context.Context, id int64) (worker.Record, error) {
	if id < 0 {
		return worker.Record{}, fmt.Errorf("%w: it is negative", leaf.ErrInvalid)
	}
	if _, once := w.Supply(); once {
		return worker.Record{}, fmt.Errorf("%w: its worker IDs are used for one start of a process each, and never again", leaf.ErrUnsupported)
	}
	if (worker.Record{Worker: id}).InPool() {
		return worker.Record{}, fmt.Errorf("%w: it is a pool's; its lease ends by itself", leaf.ErrInvalid)
	}
	if w.Mine(id) {
		return worker.Record{}, fmt.Errorf("%w, by this server: stop it first", ErrHeld)
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	old, err := w.registry.Load(ctx, id)
	if err != nil {
		return worker.Record{}, w.failed(err)
	}
	if old.IsZero() {
		return worker.Record{}, fmt.Errorf("%w: it was never claimed", leaf.ErrInvalid)
	}
	record, err := worker.Free(ctx, w.registry, id)
	return record, failed(err)
}

// failed is the error of a registry that does not answer. It goes to the log too: not every
// caller sees it.
func (w *Workers) failed(err error) error {
	w.log.Warn("the registry of worker IDs does not answer", "err", err)
	return fmt.Errorf("%w: %w", ErrRegistry, failed(err))
}

// Registry returns the registry, for other servers to lease their worker IDs from. The error
// wraps [leaf.ErrUnsupported] where worker IDs are not leased.
func (w *Workers) Registry() (worker.Registry, error) {
	_, assigned := w.registry.(worker.Assigner)
	_, once := w.registry.(worker.Disposable)
	if assigned || once {
		return nil, fmt.Errorf("%w: its worker IDs are not leased", leaf.ErrUnsupported)
	}
	return w.registry, nil
}
