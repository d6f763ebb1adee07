package segment

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// A Policy decides how many IDs to allocate at once.
type Policy int

const (
	// Adaptive holds as many IDs as the last outage budget used, at least the tag's
	// step, within the loss budget. A buffer is granted at most twice the IDs that
	// it issues, plus two steps, and what lost answers cost.
	Adaptive Policy = iota

	// Leaf is Java Leaf's rule, [LeafStep], over a chain of two segments. A crash
	// loses at most these two.
	Leaf
)

// Defaults of [Options] and [SetOptions].
const (
	DefaultOutageBudget  = 10 * time.Minute
	DefaultMaxStock      = 10_000_000
	DefaultWait          = time.Second
	DefaultCallTimeout   = 5 * time.Second
	DefaultMaxCalls      = 64
	DefaultCheckInterval = 30 * time.Second
)

// Options configures a [Buffer]. The zero value of a field means its default, and so does a negative
// number.
type Options struct {
	// Policy is how allocations are sized; default [Adaptive].
	Policy Policy

	// OutageBudget is the time whose use the stock covers; default 10 minutes. In steady
	// use, callers do not notice that the store is gone for this long. [Adaptive] only.
	OutageBudget time.Duration

	// MaxStock is the loss budget: the most IDs in memory, hence the most that a crash can cost;
	// default 10,000,000, at most 2^40. It wins over OutageBudget. The first allocation of a tag, of
	// the tag's own step, may exceed it; and consecutive IDs for a caller who left before they came
	// are added to it. [Adaptive] only; for both policies it bounds one Take.
	MaxStock int64

	// Wait bounds how long a call waits for the store to deliver after the stock is empty; default
	// 1 s. If other callers got the delivery, the time starts again.
	Wait time.Duration

	// CallTimeout bounds one call to the store; default 5 s.
	CallTimeout time.Duration

	// RegressionJump is how far above all it knows of a node lifts a counter that
	// has gone backwards, at least; a random part of it, up to twice in all, is added.
	// Default 100 times the largest step seen, at least 10,000,000.
	RegressionJump int64

	// OnCall observes each call to the store at its beginning. It returns the context for the call,
	// and an observer of its end, or nil. Both must be fast.
	OnCall func(context.Context, Call) (_ context.Context, ended func(granted int64, err error))

	// RefillContext returns the context for calls to the store on behalf of a caller with that
	// context, so that the caller's trace continues there; nil: [context.Background]. The result
	// must not end with the caller's context. The function must be fast.
	RefillContext func(caller context.Context) context.Context

	// StoreID is the required identity of the store, regardless of the memory; empty: the
	// remembered one, or else that of the first grant. After an intended replacement of the store,
	// with every counter above the IDs in use, name the new one here once.
	StoreID string

	// MaskKeys are the keys of the masks of tags.
	MaskKeys MaskKeys

	// Memory remembers the counters and the store's identity across restarts; nil: nothing does.
	Memory Memory

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger
}

const maxMaxStock = 1 << 40

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.OutageBudget = cmp.Or(max(0, opts.OutageBudget), DefaultOutageBudget)
	opts.MaxStock = min(cmp.Or(max(0, opts.MaxStock), DefaultMaxStock), maxMaxStock)
	opts.Wait = cmp.Or(max(0, opts.Wait), DefaultWait)
	opts.CallTimeout = cmp.Or(max(0, opts.CallTimeout), DefaultCallTimeout)
	opts.RegressionJump = max(0, opts.RegressionJump)
	opts.Memory = cmp.Or[Memory](opts.Memory, noMemory{})
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return opts
}

// A Call is one to a store: [Store.Advance], or [Returner.Return].
type Call struct {
	Tag    string
	Asked  int64 // of Advance; 0: as many as the tag's step
	Return bool
}

// begin tells of a call to the store.
func (b *Buffer) begin(ctx context.Context, c Call) (context.Context, func(granted int64, err error)) {
	if b.opts.OnCall == nil {
		return ctx, func(int64, error) {}
	}
	return b.opts.OnCall(ctx, c)
}
