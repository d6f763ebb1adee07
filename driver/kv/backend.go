package kv

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// ErrConflict is wrapped by [Backend.Swap] if the cell has changed.
var ErrConflict = errors.New("the cell has changed")

// A Kind is the type of a cell.
type Kind string

const (
	Tags    Kind = "tags"    // a counter; the name is the tag's
	Periods Kind = "periods" // the counter of a period; the name is the period, a space and the tag's name
	Workers Kind = "workers" // a record; the name is the worker ID, in decimal
	Format  Kind = "format"  // a marker; the name is the [Kind] that it is about
)

// A Key names a cell.
type Key struct {
	Kind Kind
	Name string
}

// String returns the kind and the name with a slash between, such as tags/order.
func (k Key) String() string { return string(k.Kind) + "/" + k.Name }

// A Cell is the content of a key.
type Cell struct {
	Key   Key
	Value string

	// Version changes with every write of the cell and never comes back. It is empty
	// if the key was never written.
	Version string

	// Server identifies the server or cluster that answered, where one may take over
	// without the last writes of another (see segment.Grant.Server). Empty, or always
	// the same, where acknowledged writes are never lost.
	Server string
}

// mark names the write that left c, for grants and records: version and value, because a version
// comes back when a store is restored from a backup.
func (c Cell) mark() string { return c.Version + " " + c.Value }

// marked returns the cell of a mark.
func marked(key Key, mark string) Cell {
	version, value, _ := strings.Cut(mark, " ")
	return Cell{Key: key, Version: version, Value: value}
}

// A Backend holds cells, durably. Its methods are safe for concurrent use and return
// soon after their context ends. Names and values are valid UTF-8 without control
// characters; a backend encodes them as its store needs it.
type Backend interface {
	// Get returns the cell of a key as it is now: not from a cache, nor from a replica
	// that may lag.
	Get(ctx context.Context, key Key) (Cell, error)

	// Swap sets the cell to value if it still equals old: by its version, by its value if a
	// restore may bring a version back, and by the answering server if old.Server is set. It
	// returns the new cell.
	//
	// If the cell has changed, Swap wrote nothing and the error wraps [ErrConflict]; now is then
	// the present cell if that took no further trip, else the zero Cell. After any other error the
	// outcome is unknown. The backend and its client library send the write once.
	Swap(ctx context.Context, old Cell, value string) (now Cell, err error)

	// List yields every cell of a kind, not Format, in any order. A cell that is
	// written meanwhile is yielded as it was before or after. An error ends the listing.
	List(ctx context.Context, kind Kind) iter.Seq2[Cell, error]

	// Clock returns the time by the store's own clock, or the zero Time if the store uses the
	// clock of this machine.
	Clock(ctx context.Context) (time.Time, error)

	// Close ends the connections; calls that wait fail.
	Close() error
}

// A Watcher is a [Backend] that notices writes.
type Watcher interface {
	// Watch returns a channel that receives, or is closed, when the cell may have been
	// written, or can no longer be watched. It ends with ctx.
	Watch(ctx context.Context, key Key) (<-chan struct{}, error)
}

// An Adder is a [Backend] that moves counters by itself, in one trip: then writers do not compete.
type Adder interface {
	// Add moves the counter in the cell of a tag forward by n, or by its step if n is 0. It
	// returns the new cell and the distance. Without a cell, or with one that does not allow the
	// move, it moves nothing and returns the present cell. After an error the outcome is unknown.
	// Add sends the write once.
	Add(ctx context.Context, key Key, n int64) (now Cell, by int64, err error)
}

// A Preparer is a [Backend] whose place for cells has to be created.
type Preparer interface {
	// Prepare creates the place if it is missing. [DB.Init] and [DB.InitRegistry] call it first.
	Prepare(ctx context.Context) error
}

// A Checker is a [Backend] that knows of settings under which its store loses cells, such
// as a time to live.
type Checker interface {
	// Check reports, wrapping leaf.ErrUnsupported, why the store cannot be trusted. It is
	// called before the first use.
	Check(ctx context.Context) error
}

// A Lossy is a [Backend] whose store may lose writes that it acknowledged, see
// [worker.LossyRegistry].
type Lossy interface {
	ServerEpoch(ctx context.Context) (worker.ServerEpoch, error)
}

// A Namer is a [Backend] whose store has other names for keys.
type Namer interface {
	// KeyName returns the key as an operator knows it, such as "key /leaf/tags/order".
	KeyName(key Key) string
}
