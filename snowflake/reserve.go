package snowflake

import (
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
)

// A Reserve bounds the IDs between two checks of the clock and the lease. In the zero value only
// those two bound the IDs, and the other fields mean nothing. A Reserve has the effect of the ring
// in Baidu's uid-generator with a number instead of the ring: a refill costs one reading of the
// clock.
type Reserve struct {
	// Size is how many IDs it holds when it is full.
	Size int64

	// Refill is at what percentage of Size, 1 … 99, it is filled up again; default 50.
	// It is looked at up to each 10 ms, and when it is used up.
	Refill int

	// Interval is the time between unconditional refills during traffic; 0: no such refills.
	Interval time.Duration
}

// DefaultRefill is the default of [Reserve.Refill].
const DefaultRefill = 50

func (r Reserve) check() error {
	if r.Size < 0 || r.Refill < 1 || r.Refill > 99 || r.Interval < 0 {
		return fmt.Errorf("generator: %w: a reserve of %d IDs, filled up at %d %% and each %v: needed are 0 or more, 1 … 99 and 0 or more",
			leaf.ErrInvalid, r.Size, r.Refill, r.Interval)
	}
	return nil
}

// A reserve is a Reserve in use. Times are Unix milliseconds.
type reserve struct {
	size     uint64
	least    uint64 // a refill follows at this level
	interval int64
	due      int64 // when the next look fills it up in any case
}

func newReserve(r Reserve) reserve {
	most := uint64(r.Size)
	least := most/100*uint64(r.Refill) + most%100*uint64(r.Refill)/100
	return reserve{size: most, least: least, interval: r.Interval.Milliseconds(), due: math.MaxInt64}
}

// fill returns how many slots to keep in reserve, and whether it is time to fill up.
func (r *reserve) fill(now int64, left, backlog uint64) (slots uint64, due bool) {
	if r.size == 0 {
		return math.MaxUint64, true
	}
	if left > r.least && left >= backlog && now < r.due {
		return 0, false
	}
	if r.interval > 0 {
		r.due = now + r.interval
	}
	return max(r.size, backlog), true
}
