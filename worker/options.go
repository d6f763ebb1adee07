package worker

import (
	"cmp"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Defaults of [Options].
const (
	DefaultHorizon     = 30 * time.Minute
	defaultExtend      = 10 * time.Second
	DefaultMaxAhead    = 2 * time.Second
	defaultCallTimeout = 5 * time.Second
	DefaultTolerance   = 5 * time.Second
	defaultMaxJump     = 24 * time.Hour
)

// Options configures a [Keeper]. The zero value of a field means its default.
type Options struct {
	// Layouts are all layouts under the lease. The smallest of their worker ID ranges bounds the
	// worker ID; without layouts: 1023.
	Layouts []ServedLayout

	// LeaseUsers issue under the lease.
	LeaseUsers []LeaseUser

	// State remembers the lease across restarts; nil: nothing does, and every start after a crash
	// takes another worker ID. It is the keeper's from [NewKeeper] until the end of [Keeper.Run].
	State *StateFile

	// RegistryKey identifies the registry, such as a URL: the keeper does not touch a lease of
	// another one in State. It goes into the file, so it must not have a password.
	RegistryKey string

	// Clock is the clock for horizons; default [NewClock]. The generators should have the same.
	Clock *Clock

	// Owner tells people which node this is. The part before the first space stays the
	// same over a restart, such as the host name and port.
	Owner string

	// Health tells people how this node is, in a few words. The keeper calls it whenever it writes
	// its record, and adds the words to Owner; nil: nothing. It must return at once.
	Health func() string

	// Lock locks a worker ID of a layout against all other processes of this machine, with any
	// registry, until the caller closes the result. If another process has it, the error wraps
	// [ErrInUse]; the keeper then claims another worker ID. Such a process may have had the worker ID
	// until a moment ago: if the registry has no clock, each generator begins as far after the claim
	// as it may run ahead, see [Lease.Shared], and the first lease reaches as much further. nil: no
	// lock, and processes with registries of their own can have the same worker ID.
	Lock func(layout ServedLayout, worker int64) (io.Closer, error)

	// Horizon is how far ahead of the clock a lease reaches, so how long an outage
	// of the registry is survived; default 30 minutes. On a [LossyRegistry] it must exceed
	// Tolerance by three times Extend, or a fail-over ends the lease.
	Horizon time.Duration

	// Extend is how often the lease is extended; default 10 s, at most a third of Horizon.
	Extend time.Duration

	// MaxAhead is the most that any of the generators runs ahead of the clock; default 2 s.
	MaxAhead time.Duration

	// LeastAhead is the least that any of them does, which says when all can issue;
	// default MaxAhead.
	LeastAhead time.Duration

	// CallTimeout bounds one call of the registry; default 5 s.
	CallTimeout time.Duration

	// Tolerance is how far the clock may be off the registry's, any server's of it, or its peers'
	// median, at the start; default 5 s.
	Tolerance time.Duration

	// MaxJump bounds the step forwards of this machine's clock that the keeper follows without
	// another clock's confirmation; default 24 hours.
	MaxJump time.Duration

	// Reclaim promises that this machine runs no other copy of this node, also after a restart of
	// the machine or a copy of its data directory: the keeper hands back the worker ID of the state
	// file without proof that its process is dead. For assigned worker IDs.
	Reclaim bool

	// Settle has a clean stop wait until the clock has passed everything issued,
	// for servers that take the worker ID over and know no floor.
	Settle bool

	// ClaimDelay overrides how long the incarnation of a [LossyRegistry] must have answered before
	// a claim counts; default two Extend + MaxAhead + Tolerance. The registry keeps the largest one
	// ever used, and all keepers follow it. A keeper that needs more by default claims nothing,
	// wrapping [ErrClaimDelay]; a larger value here raises it. Negative: claims do not wait, and
	// stamp nothing.
	ClaimDelay time.Duration

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger

	raises bool // an explicit ClaimDelay
	short  bool // and is less than holders need
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Horizon = cmp.Or(opts.Horizon, DefaultHorizon)
	opts.Extend = cmp.Or(opts.Extend, min(defaultExtend, opts.Horizon/3))
	opts.MaxAhead = cmp.Or(opts.MaxAhead, DefaultMaxAhead)
	opts.LeastAhead = cmp.Or(opts.LeastAhead, opts.MaxAhead)
	opts.CallTimeout = cmp.Or(opts.CallTimeout, defaultCallTimeout)
	opts.Tolerance = cmp.Or(opts.Tolerance, DefaultTolerance)
	opts.MaxJump = cmp.Or(opts.MaxJump, defaultMaxJump)
	opts.Clock = cmp.Or(opts.Clock, NewClock())
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.Owner = strings.ToValidUTF8(opts.Owner, "?")
	opts.Layouts = slices.SortedFunc(slices.Values(opts.Layouts), byName)
	needed := 2*opts.Extend + opts.MaxAhead + opts.Tolerance
	opts.raises = opts.ClaimDelay > 0
	opts.ClaimDelay = cmp.Or(opts.ClaimDelay, needed)
	if opts.short = opts.ClaimDelay > 0 && opts.ClaimDelay < needed; opts.short {
		opts.Logger.Warn("claim_delay is too short for a holder whose record was lost to have stopped: leave it out, or set it to 0 where nothing can be lost",
			"claim_delay", opts.ClaimDelay, "needed", needed)
	}
	return opts
}
