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

	// ErrFarAhead: the worker ID assigned to this node was used, or held, further in the future
	// than any lease reaches: a clock is wrong, or was.
	ErrFarAhead = errors.New("the worker ID was used far in the future")

	// ErrNotCreated: the registry does not exist. An init creates it.
	ErrNotCreated = errors.New("the worker registry was not created")

	// ErrNewer: a record was written by a newer release, whose meaning is not known.
	ErrNewer = errors.New("written by a newer release of this program: upgrade it")

	// ErrStaleReads: reads of the registry do not show acknowledged writes, as behind a proxy that
	// sends reads to a replica. The keeper claims no worker ID from such a registry.
	ErrStaleReads = errors.New("the worker registry's reads do not see its writes")

	// ErrClaimDelay: the nodes of this registry wait less after a loss of writes than a lease
	// of this node would need.
	ErrClaimDelay = errors.New("the claim delay of the worker registry is too short for this node")

	// ErrUsedUp: a [Disposable] has dealt all worker IDs of the layout, each to one start.
	ErrUsedUp = fmt.Errorf("%w: no worker ID is left", leaf.ErrOverflow)
)

// A Registry keeps one cell per worker ID, durably, and changes it only by compare-and-swap.
// [Keeper] has the protocol; a driver knows nothing of it. Cells have no time to live, and nothing
// deletes them. The methods are safe for concurrent use, and fail when their context ends.
type Registry interface {
	// Load returns the present record in the cell of a worker, neither from a cache nor from a
	// lagging replica. An unwritten cell holds the zero Record with Worker set. A read may show an
	// unacknowledged swap that the registry then loses: InnoDB shows a commit before it is on the
	// disk.
	Load(ctx context.Context, worker int64) (Record, error)

	// Swap writes new into the cell that old and new name, atomically and durably, if the cell
	// holds old. It returns new with its version. If old has a version, Swap compares that;
	// otherwise it compares whole records, see [Record.Equal]. New is not the zero record. If the
	// cell holds something else, the error wraps [ErrConflict]. After any other error the outcome
	// is unknown: the write may have happened, or may happen later. A driver does not repeat a Swap
	// by itself.
	Swap(ctx context.Context, old, new Record) (Record, error)

	// List returns all written records, by worker ID.
	List(ctx context.Context) ([]Record, error)

	// Clock returns the time by the registry's own clock, or the zero Time if it uses the clock of
	// this machine.
	Clock(ctx context.Context) (time.Time, error)
}

// An Assigner is a [Registry] that says which worker ID to use; others have the
// keeper choose a free one.
type Assigner interface {
	// Assign returns the worker ID of this node, at most max. A later call may return another one.
	Assign(ctx context.Context, max int64) (int64, error)
}

// A Watcher is a [Registry] that notices when another node writes.
type Watcher interface {
	// Watch returns a channel that receives, or is closed, when a cell may have been written by
	// others, or can no longer be watched; nil if writes are not noticed. It ends with ctx.
	Watch(ctx context.Context, worker int64) (<-chan struct{}, error)
}

// A LossyRegistry is a [Registry] that may be able to lose writes that it has
// acknowledged, by a fail-over for example. Claims may then wait before they count.
type LossyRegistry interface {
	// ServerEpoch returns which server answers at present.
	ServerEpoch(ctx context.Context) (ServerEpoch, error)
}

// A ServerEpoch describes the answering server of a [LossyRegistry].
type ServerEpoch struct {
	// Lossy: this server may lose writes that it has acknowledged, or others that it took
	// over from may have. In doubt they may.
	Lossy bool

	// Incarnation names the epoch: an uninterrupted time of service, in which the server loses
	// nothing. A restart and a fail-over begin another one, with a new name. Empty: unknown.
	Incarnation string

	// Untracked: other servers may have answered within the incarnation, without a trace
	// in its name.
	Untracked bool
}
