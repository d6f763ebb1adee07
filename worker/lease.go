package worker

import (
	"math"
	"sync/atomic"
)

// Forever is a limit that no time reaches.
const Forever = math.MaxInt64

// A Lease is the right to issue times under one worker ID: those from Floor up to,
// not including, Limit, all in Unix milliseconds. A [Keeper] gives it to its
// generators. Its methods are safe for concurrent use.
type Lease struct {
	worker, floor int64

	limit atomic.Int64
	wake  chan struct{} // holds one element when the limit is to grow; nil: nobody listens
}

// Unfenced returns a lease without a registry behind it, for tests and for those who
// see to it by other means that no two generators ever share a worker ID and a time:
// it allows the times from floor up to, not including, limit.
func Unfenced(worker, floor, limit int64) *Lease {
	l := &Lease{worker: worker, floor: floor}
	l.limit.Store(limit)
	return l
}

// Worker returns the worker ID.
func (l *Lease) Worker() int64 { return l.worker }

// Floor returns the first time that may be issued.
func (l *Lease) Floor() int64 { return l.floor }

// Limit returns the first time that may not be issued yet. It only grows.
func (l *Lease) Limit() int64 { return l.limit.Load() }

// Need asks for the limit to grow to until, which it will not where the lease does not
// reach that far, nor beyond what [Options.MaxAhead] of the keeper calls for. It returns
// at once; the limit grows later. It is cheap enough to be called again until that has
// happened.
func (l *Lease) Need(until int64) {
	if l.wake == nil || until <= l.limit.Load() {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// A Generator issues times under a lease. Its methods are called by one goroutine
// at a time, while others issue.
type Generator interface {
	// Begin has the generator issue under l from now on. It is sealed when Begin is
	// called.
	Begin(l *Lease)

	// Seal ends issuing under the present lease, for good and before it returns:
	// a caller on its way either owns what it gets or gets nothing. It returns the
	// earliest time, in Unix milliseconds, that lies after everything issued under
	// that lease; 0 if there was nothing. why is what callers are told from then
	// on. A sealed generator takes only note of why, and returns 0.
	Seal(why error) int64
}
