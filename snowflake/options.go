package snowflake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// DefaultWait is the default of [Options.Wait].
const DefaultWait = time.Second

// Options configures a [Generator]. The zero value of a field means its default.
type Options struct {
	// MaxAhead is how far beyond the clock a tick may begin for IDs to be issued in
	// it, in whole milliseconds: what bursts, and steps of the clock backwards, may
	// borrow. Default [worker.DefaultMaxAhead]; negative: not at all. The keeper of
	// the lease has to know it: [worker.Options.MaxAhead].
	MaxAhead time.Duration

	// Wait bounds how long a call waits; default 1 s. Where the lease is missing or has
	// ended, it counts from then on: once that has lasted for longer, calls fail at once.
	Wait time.Duration

	// RandomStart is how many sequence numbers, from 0, an idle tick may begin at, so
	// that IDs spread over shards also where there is little traffic. Default all of
	// them; 1: always at 0; [LeafRandomStart]: like Java Leaf.
	RandomStart int64

	// Reject has calls fail at once when more IDs are asked for than there are, instead
	// of waiting until there are.
	Reject bool

	// Reserve bounds what is taken without a look at the clock and the lease; default
	// all that they allow.
	Reserve Reserve

	// Clock is the time that IDs carry; default [worker.NewClock]. It should be the
	// keeper's.
	Clock *worker.Clock
}

// withDefaults returns o with the defaults of layout filled in.
func (o *Options) withDefaults(layout Layout) (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.MaxAhead = max(cmp.Or(opts.MaxAhead, worker.DefaultMaxAhead), 0)
	opts.Wait = cmp.Or(opts.Wait, DefaultWait)
	width := uint64(layout.MaxSequence()) + 1
	opts.RandomStart = cmp.Or(opts.RandomStart, int64(min(width, 1<<62)))
	if opts.Clock == nil {
		opts.Clock = worker.NewClock()
	}
	opts.Reserve.Refill = cmp.Or(opts.Reserve.Refill, DefaultRefill)
	if err := opts.Reserve.check(); err != nil {
		return opts, err
	}
	if opts.Wait < 0 {
		return opts, fmt.Errorf("generator: %w: a wait of %v", leaf.ErrInvalid, opts.Wait)
	}
	if opts.RandomStart < 0 || uint64(opts.RandomStart) > width {
		return opts, fmt.Errorf("generator: %w: a random start of %d is not in 1 … %d, the sequence numbers of a tick",
			leaf.ErrInvalid, opts.RandomStart, width)
	}
	return opts, nil
}
