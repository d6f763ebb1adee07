package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// The errors that the protocol branches on.
var (
	// ErrConflict: the cell does not hold the record that a [Registry.Swap] was to
	// replace. Nothing was written, unless the same Swap was made before.
	ErrConflict = errors.New("the worker's record has changed")

	// ErrTaken: another node uses the worker ID. A registry that notices wraps it;
	// the holder stops at once.
	ErrTaken = errors.New("the worker ID is used by another node")

	// ErrWaiting: the worker ID is this node's, and must not be used yet. Whatever wraps
	// it says why, in words that every caller may read.
	ErrWaiting = errors.New("waiting before the worker ID is used")

	// ErrNoneFree: all worker IDs are in use.
	ErrNoneFree = errors.New("no worker ID is free")

	// ErrFarAhead: the worker ID that is assigned to this node was used, or held, further
	// in the future than any lease reaches: a clock is wrong, or was.
	ErrFarAhead = errors.New("the worker ID was used far in the future")

	// ErrNotCreated: there is no registry yet. An init creates it.
	ErrNotCreated = errors.New("the worker registry was not created")

	// ErrNewer: a record was written by a newer release, whose meaning is not known.
	ErrNewer = errors.New("written by a newer release of this program: upgrade it")

	// ErrStaleReads: the registry does not show what it has acknowledged, as where a proxy
	// sends reads to a replica. No worker ID is claimed from such a registry.
	ErrStaleReads = errors.New("the worker registry's reads do not see its writes")

	// ErrClaimDelay: the nodes of this registry wait less after a loss of writes than a lease
	// of this node would need.
	ErrClaimDelay = errors.New("the claim delay of the worker registry is too short for this node")

	// ErrUsedUp: a [Disposable] has dealt all worker IDs of the layout, each to one start.
	ErrUsedUp = fmt.Errorf("%w: no worker ID is left", leaf.ErrOverflow)
)

// A Registry keeps one cell per worker ID, durably, and changes it only by
// compare-and-swap. The protocol itself lives in [Keeper]; a driver holds none of
// it. Cells have no time to live and are never deleted. The methods are safe for
// concurrent use, and fail when their context ends.
type Registry interface {
	// Load returns the record in the cell of a worker, as it is now: not from a
	// cache, nor from a replica that may lag. A cell that was never written holds
	// the zero Record with Worker set. What a swap wrote that was not acknowledged may be
	// read and yet be lost: InnoDB shows what is committed before it is on the disk.
	Load(ctx context.Context, worker int64) (Record, error)

	// Swap writes new into the cell that old and new name, atomically and durably, if
	// the cell holds old. It compares whole records, see [Record.Equal]; new is not the
	// zero record. If the cell holds something else it returns an error that wraps
	// [ErrConflict]. After any other error the outcome is unknown: the write may have
	// happened, or may happen later. A driver does not repeat a Swap by itself.
	Swap(ctx context.Context, old, new Record) error

	// List returns all records that were ever written, by worker ID.
	List(ctx context.Context) ([]Record, error)

	// Clock returns the time by the registry's own clock, the zero Time if that is
	// the clock of this machine.
	Clock(ctx context.Context) (time.Time, error)
}

// An Assigner is a [Registry] that says which worker ID to use; others have the
// keeper choose a free one.
type Assigner interface {
	// Assign returns the worker ID of this node, at most max. A later call may
	// return another one.
	Assign(ctx context.Context, max int64) (int64, error)
}

// A Watcher is a [Registry] that notices when another node writes.
type Watcher interface {
	// Watch returns a channel that receives, or is closed, when a cell may have been
	// written by others, or can no longer be watched; nil if writes are not noticed. It
	// ends with ctx.
	Watch(ctx context.Context, worker int64) (<-chan struct{}, error)
}

// A LossyRegistry is a [Registry] that may be able to lose writes that it has
// acknowledged, by a fail-over for example. Claims may then wait before they count.
type LossyRegistry interface {
	// Reign returns which server answers at present.
	Reign(ctx context.Context) (Reign, error)
}

// A Reign says what is known of the server that answers for a [LossyRegistry].
type Reign struct {
	// Lossy: this server may lose writes that it has acknowledged, or others that it took
	// over from may have. In doubt they may.
	Lossy bool

	// Incarnation names one uninterrupted reign of one server, in which it loses nothing. A
	// restart and a fail-over begin another one, whose name was never used before. Empty: not
	// known.
	Incarnation string

	// Unmarked: other servers may have reigned within the incarnation, without a trace
	// in its name.
	Unmarked bool
}
