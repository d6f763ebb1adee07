package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Status describes a [Keeper] for people. An unknown time is the zero Time.
type Status struct {
	Held     bool
	Worker   int64
	Term     int64
	Floor    time.Time
	Horizon  time.Time // as far as the registry is known to agree
	Since    time.Time // when the lease was got
	Extended time.Time // when the registry last agreed

	Err error // why the keeper has no lease, or its present faults; nil without any

	// ClockOffset is how far this machine's clock was ahead of the registry's when the lease was
	// last extended.
	ClockOffset time.Duration

	ClockStep time.Duration // how far this machine's clock has moved away from the time that IDs carry

	wait string // why the worker ID must not be used before Floor

	PutBacks int64 // how often the registry had lost writes
	Lost     int64 // how often the lease was lost to others

	// Of a registry that may lose writes.
	Incarnation      string        // which server answers, see [ServerEpoch]; empty: not known
	IncarnationSince time.Time     // since when it is known to answer
	ClaimDelay       time.Duration // how long it must have answered before a claim counts
	ClaimWaits       int64         // how many claims had to wait for that
}

// Status returns the current status.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Err returns why no IDs can be issued under the keeper's lease at present, nil if they can.
func (k *Keeper) Err() error {
	s := k.Status()
	now := k.clock.milli()
	switch {
	case !s.Held:
		return s.Err
	case s.Floor.After(now.Add(k.opts.LeastAhead)):
		return fmt.Errorf("%w: worker ID %d may be used from %s on, in %v: %s", ErrWaiting, s.Worker, s.Floor.UTC().Format(time.RFC3339),
			s.Floor.Sub(now).Round(time.Second), s.wait)
	case !now.Before(s.Horizon):
		return fmt.Errorf("the lease of worker ID %d ran out at %s: %w", s.Worker, s.Horizon.UTC().Format(time.RFC3339), s.Err)
	}
	return nil
}

// count changes the status.
func (k *Keeper) count(change func(*Status)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.status)
}

// recordStart notes a new lease.
func (h *heldLease) recordStart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.throttle, h.faults = logThrottle{}, [numFaults]error{}
	now := h.clock.milli()
	s := &h.status
	s.Held, s.Err, s.Worker, s.Term = true, nil, h.record.Worker, h.record.Term
	s.Floor, s.Horizon, s.Since = timeOf(h.lease.floor), h.horizon.load(), now
	s.ClockOffset = h.record.Offset
	if s.Extended = now; h.fromFile {
		s.Extended = time.Time{}
	}
	s.wait = "times before that may have been issued under it"
	h.log.Info("holding a worker ID", "worker", h.record.Worker, "term", h.record.Term, "horizon", h.record.Horizon)
	if wait := s.Floor.Sub(now); wait > h.opts.LeastAhead {
		h.log.Warn("the worker ID must not be used yet", "worker", h.record.Worker, "from", s.Floor, "in", wait.Round(time.Second), "because", s.wait)
	}
}

// reportWait tells callers, and once the operator, that a claim does not count yet.
func (h *heldLease) reportWait(err error, again bool) {
	h.reportNoLease(err)
	if !again {
		h.count(func(s *Status) { s.ClaimWaits++ })
	}
}

// recordResult notes how a call of the registry went.
func (h *heldLease) recordResult(err error) {
	if err == nil {
		h.count(func(s *Status) {
			s.Horizon, s.Extended = h.record.Horizon, h.clock.milli()
			s.ClockOffset = h.record.Offset
		})
	}
	h.report(registryFault, err, "the worker registry cannot be asked; the lease goes on until its horizon", "horizon", h.record.Horizon)
}

// What can be wrong while a lease is held.
const (
	registryFault = iota
	stateFault
	clockFault
	numFaults
)

// report records a fault, or nil for its end. It updates the status and logs a new fault.
func (k *Keeper) report(fault int, err error, what string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.status.Held {
		return // a claim that waits is extended, too
	}
	k.faults[fault] = err
	err = errors.Join(k.faults[:]...)
	k.status.Err = err
	switch {
	case err == nil && k.throttle.text != "":
		k.throttle = logThrottle{}
		k.log.Info("the worker lease is in order again")
	case err != nil && k.throttle.worth(err, k.clock.mono()):
		k.log.Warn(what, append(args, "err", err)...)
	}
}

// freeAhead is more than any generator runs ahead of the clock: a worker ID that an
// operator frees starts beyond it.
const freeAhead = 2 * time.Minute

// Free resets the record of a worker ID whose holder is gone, so that a node can claim it two
// minutes later, and returns the new record. The caller must be certain that the holder is dead and
// will not start again without the registry, or will see the change before it issues anything two
// minutes ahead: the next holder issues the times above that again. The error wraps [ErrConflict] if
// another write came first.
func Free(ctx context.Context, reg Registry, worker int64) (Record, error) {
	old, err := reg.Load(ctx, worker)
	if err != nil {
		return Record{}, err
	}
	now, err := reg.Clock(ctx)
	if err != nil {
		return Record{}, err
	}
	if now.IsZero() {
		now = time.Now()
	}
	next := old
	next.Instance, next.Term = Instance{}, old.Term+1
	next.Horizon = earlier(old.Horizon, now.Add(freeAhead).Truncate(time.Millisecond))
	next.Version = ""
	return reg.Swap(ctx, old, next)
}
