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

	// Wait bounds the wait of a call; default 1 s. Without a lease it counts from the loss of the
	// lease: after that time calls fail at once.
	Wait time.Duration

	// RandomStart bounds the first sequence number of an idle tick, from 0, so that the IDs of
	// quiet services spread over shards. Default: all sequence numbers; 1: always 0;
	// [LeafRandomStart]: like Java Leaf.
	RandomStart int64

	// Reject makes calls fail at once if too few IDs are available, instead of waiting.
	Reject bool

	// Reserve bounds the IDs between two checks of the clock and the lease; default: their own
	// bounds.
	Reserve Reserve

	// Clock is the time that IDs carry; default [worker.NewClock]. It should be the keeper's.
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
