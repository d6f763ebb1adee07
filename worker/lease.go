package worker

import (
	"math"
	"sync/atomic"
	"time"
)

// A Lease is the right to issue times under one worker ID: those from Floor up to,
// not including, Limit, in whole milliseconds, and after [Lease.Shared]. A [Keeper] gives it to its
// users. Its methods are safe for concurrent use.
type Lease struct {
	worker, floor, shared int64

	limit atomic.Int64
	wake  chan struct{} // holds one element when the limit should grow; nil: it never does
}

// Unfenced returns a lease without a registry: it allows the times from floor up to, not including,
// limit; the zero Time is not a limit. It is for tests, and for programs that ensure by other means
// that no two generators share a worker ID and a time.
func Unfenced(worker int64, floor, limit time.Time) *Lease {
	l := &Lease{worker: worker, floor: unixMilli(milliUp(floor))}
	l.limit.Store(limit.UnixMilli())
	if limit.IsZero() {
		l.limit.Store(math.MaxInt64)
	}
	return l
}

// milliUp returns the first whole millisecond at or after t: a floor is rounded up, as a
// limit is rounded down.
func milliUp(t time.Time) time.Time {
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// Worker returns the worker ID.
func (l *Lease) Worker() int64 { return l.worker }

// Floor returns the first time that may be issued.
func (l *Lease) Floor() time.Time { return time.UnixMilli(l.floor) }

// Shared returns until when another process of this machine may have had the worker ID, from a
// registry of its own; the zero Time: none had, or all have this registry. A user that runs ahead of
// the clock begins later by the most that it does, because the user of that process may have run as
// far ahead.
func (l *Lease) Shared() time.Time { return timeOf(l.shared) }

// Limit returns the first time that may not be issued yet. It only grows.
func (l *Lease) Limit() time.Time { return time.UnixMilli(l.limit.Load()) }

// Need asks for the limit to grow to until. It grows no further than the horizon, and no further
// ahead of the clock than [Options.MaxAhead] of the keeper calls for. Need returns at once; the
// limit grows later. It is cheap enough to be called again until then.
func (l *Lease) Need(until time.Time) {
	if l.wake == nil || until.UnixMilli() <= l.limit.Load() {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// A LeaseUser issues times under a lease. Its methods are called by one goroutine at a
// time, while others issue.
type LeaseUser interface {
	// Begin has the user issue under l from now on, from its floor on and after [Lease.Shared]. The
	// user is sealed when Begin is called.
	Begin(l *Lease)

	// Seal ends issuing under the present lease, for good and before it returns: a concurrent
	// caller either owns its IDs or fails. It returns the earliest time, in whole milliseconds,
	// after all IDs under that lease, or the zero Time without any. Callers get the reason from
	// then on. A sealed user only records the reason, and returns the zero Time.
	Seal(why error) time.Time
}
