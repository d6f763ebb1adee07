package worker

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"time"
)

// A lossGuard has the rules for registries that may lose writes, see the package documentation: when
// a claim counts, how far a lease reaches, and when the registry's agreement comes too late. On
// other registries it restricts nothing.
type lossGuard struct {
	*Keeper

	known span          // of the incarnation that answered last
	noted time.Time     // the registry's time in the view of that
	delay time.Duration // the registry's claim delay

	// Of the present lease.
	unnamed span       // of looks at a registry without a known incarnation
	short   bool       // the lease reaches no further than safe: the registry has not agreed since it was continued, or confirmed
	safe    atomicSafe // see safeUntil; the state file keeps it
}

// A span is a time, by the registry's clock, in which one incarnation of the registry answered
// without an interruption.
type span struct {
	incarnation string
	since, seen time.Time
	offset      time.Duration // how far the clock of the machine that saw it was ahead of the registry's
}

// silence is how long nothing has been seen, up to v: by the registry's clock, or by the machines' if
// that is longer. The registry's may have been set back meanwhile.
func (s span) silence(v view) time.Duration {
	passed := v.registry.Sub(s.seen)
	return max(passed, passed+v.offset-s.offset)
}

// A safeTime is the result of safeUntil, and the incarnation by whose agreement it was set.
type safeTime struct {
	time        time.Time
	incarnation string
}

// An atomicSafe is a safeTime that the writer of the state file reads at any moment.
type atomicSafe struct{ p atomic.Pointer[safeTime] }

func (a *atomicSafe) store(t time.Time, incarnation string) { a.p.Store(&safeTime{t, incarnation}) }

func (a *atomicSafe) load() safeTime {
	if s := a.p.Load(); s != nil {
		return *s
	}
	return safeTime{}
}

// readEpoch asks which server answers.
func (g *lossGuard) readEpoch(ctx context.Context, v *view) (err error) {
	if f, ok := g.reg.(LossyRegistry); ok && g.opts.ClaimDelay >= 0 {
		v.epoch, err = ask(ctx, g.Keeper, f.ServerEpoch)
	}
	return err
}

// noteEpoch records the answering incarnation and its known age: by the records in v, and by the
// views of this keeper. A wrong clock does not count: its stamps would look older or younger after
// its correction.
func (g *lossGuard) noteEpoch(v view) {
	incarnation := v.epoch.Incarnation
	if !v.epoch.Lossy || incarnation == "" || g.checkOffset(v.offset, "") != nil {
		return
	}
	since, before := g.epochSince(v), g.known
	g.known, g.noted = span{incarnation, since, v.asked(), v.offset}, v.registry
	g.count(func(s *Status) { s.Incarnation, s.IncarnationSince = incarnation, since })
	if before.incarnation != "" && before.incarnation != incarnation {
		g.log.Warn("the worker registry was restarted, or another server has taken over", "incarnation", incarnation, "before", before.incarnation)
	}
}

// epochSince returns since when the present incarnation is known to have answered: since its
// earliest stamp, or since now.
func (g *lossGuard) epochSince(v view) time.Time {
	switch {
	case v.epoch.Incarnation == "":
		return v.registry
	case v.epoch.Untracked:
		return g.untrackedSince(v)
	}
	since := v.registry
	for s := range g.spans(v) {
		if s.incarnation == v.epoch.Incarnation {
			since = earlier(since, s.since)
		}
	}
	return since
}

// untrackedSince is epochSince where others may have answered within the incarnation. Then only the
// latest stamp counts, and only if writes followed it without a gap until now. A write under
// another incarnation ended the epoch, too.
func (g *lossGuard) untrackedSince(v view) time.Time {
	var since time.Time
	silence := time.Duration(math.MaxInt64)
	for s := range g.spans(v) {
		switch {
		case s.seen.After(v.registry.Add(g.opts.Tolerance)): // by a clock that was ahead
		case s.incarnation == v.epoch.Incarnation:
			since, silence = later(since, s.since), min(silence, s.silence(v))
		case s.incarnation != "":
			since = later(since, s.seen)
		}
	}
	if silence > 2*g.opts.Extend {
		return v.registry
	}
	return since
}

// spans yields the spans known to this keeper, and those of the records in v.
func (g *lossGuard) spans(v view) iter.Seq[span] {
	return func(yield func(span) bool) {
		if !yield(g.known) {
			return
		}
		for _, r := range v.records {
			if !yield(span{r.Incarnation, r.Since, r.Seen, r.Offset}) {
				return
			}
		}
	}
}

// stamp completes a record that this keeper writes by v.
func (g *lossGuard) stamp(next *Record, v view) {
	next.Incarnation, next.Since = "", time.Time{}
	if v.epoch.Incarnation != "" && v.epoch.Incarnation == g.known.incarnation && v.registry.Equal(g.noted) {
		next.Incarnation, next.Since = g.known.incarnation, g.known.since
	}
	next.ClaimDelay = max(next.ClaimDelay, g.delay)
}

// checkDelay learns the registry's claim delay, which the first claim sets. A lease that may
// be used for longer than that after a loss must not be claimed, unless an operator says so.
func (g *lossGuard) checkDelay(v view) error {
	if !v.epoch.Lossy {
		return nil
	}
	var kept time.Duration
	for _, r := range v.records {
		kept = max(kept, r.ClaimDelay)
	}
	own := g.opts.ClaimDelay.Truncate(time.Millisecond)
	if kept > 0 && kept < own {
		if !g.opts.raises {
			return fmt.Errorf("%w: it may issue times for %v after its record is lost, and other nodes wait for %v only: have all of them wait for %v",
				ErrClaimDelay, g.opts.ClaimDelay, kept, g.opts.ClaimDelay)
		}
		g.log.Warn("the claim delay of the worker registry is raised", "from", kept, "to", g.opts.ClaimDelay)
	}
	g.delay = max(kept, own)
	g.count(func(s *Status) { s.ClaimDelay = g.delay })
	return nil
}

// claimed starts a lease by its claim r, written by v.
func (g *lossGuard) claimed(v view, r Record) {
	g.unnamed, g.short = span{}, false
	g.safe.store(g.safeUntil(v, r), r.Incarnation)
}

// continued starts the lease r from the state file, which reaches up to safe.
func (g *lossGuard) continued(safe time.Time, r Record) {
	g.unnamed, g.short = span{}, true
	g.safe.store(safe, r.Incarnation)
}

// safeUntil returns a time below which no other node may issue, even if the registry has
// lost r since it was written. A claim after the loss begins ClaimDelay beyond the first time
// that the next incarnation said. Its clock, of another server by then, is at most the tolerance
// behind the one that r was written by, or behind this machine's.
func (g *lossGuard) safeUntil(v view, r Record) time.Time {
	if !v.epoch.Lossy {
		return r.Horizon
	}
	written := r.Seen.Add(min(0, r.Offset)) // by the registry's clock, and by ours
	return earlier(r.Horizon, written.Add(g.opts.ClaimDelay-g.opts.Tolerance))
}

// claimFloor returns from when on times may be issued under the claim r that v shows: by then each
// holder that the registry does not know of any more has noticed. Until then the error is a
// [notYet]: v must be read again, since the registry may lose writes meanwhile.
func (g *lossGuard) claimFloor(v view, r Record) (floor time.Time, err error) {
	if !v.epoch.Lossy {
		return time.Time{}, nil
	}
	if v.epoch.Incarnation != "" || g.unnamed.silence(v) > 2*g.opts.Extend {
		g.unnamed.since = v.registry // since the last look others may have had the worker ID, and the registry lost that
	}
	g.unnamed.seen, g.unnamed.offset = v.asked(), v.offset
	since := g.unnamed.since
	if v.epoch.Incarnation != "" {
		if err := g.checkOffset(v.offset, "the worker registry's"); err != nil {
			return time.Time{}, err
		}
		since = g.known.since
	}
	floor = since.Add(g.delay)
	now := earlier(g.earliest(v), g.clock.milli()) // the registry's clock may have been set forwards since
	if wait := floor.Sub(now); wait > 0 {
		return time.Time{}, &notYet{g.clock.milli().Add(wait), fmt.Errorf("%w: worker ID %d may be used from %s on, in %v: the registry may lose writes, and a holder that it does not know of any more must have noticed by then (claim_delay)",
			ErrWaiting, r.Worker, floor.UTC().Format(time.RFC3339), wait.Round(time.Second))}
	}
	return floor, nil
}

// confirm returns the horizon of a claim that counts from floor on. It is a safe time until the
// registry agrees to an extension: this process may have been paused since its look, or be paused
// now, and does not yet notice a loss as a holder does.
func (g *lossGuard) confirm(v view, r Record, floor time.Time) time.Time {
	if !v.epoch.Lossy || g.opts.short {
		return r.Horizon
	}
	g.short = true
	return later(floor, earlier(r.Horizon, g.safe.load().time))
}

// agree takes in that the registry agreed to r, an extension of the lease held. An error ends the
// lease.
func (g *lossGuard) agree(ctx context.Context, v view, held, r Record, fromFile bool) error {
	if err := g.checkServer(ctx, &v, held); err != nil {
		return fmt.Errorf("ask the worker registry which server answers: %w", err)
	}
	if err := cmp.Or(g.checkHorizon(v, held, fromFile), g.checkAlone(v, held, r)); err != nil {
		return err
	}
	g.short = false
	g.safe.store(g.safeUntil(v, r), r.Incarnation)
	return nil
}

// checkAlone reports an agreement that comes too late for a short lease: the registry may have lost
// another holder meanwhile. If all nodes wait less than this one needs, that may happen before this
// process notices a loss.
func (g *lossGuard) checkAlone(v view, held, r Record) error {
	now := g.latest(v)
	if v.epoch.Incarnation != held.Incarnation { // another server's clock may be behind by the tolerance
		now = now.Add(g.opts.Tolerance)
	}
	if g.short && v.epoch.Lossy && (!now.Before(g.safe.load().time) || r.ClaimDelay < g.opts.ClaimDelay.Truncate(time.Millisecond)) {
		return fmt.Errorf("%w: the lease of worker ID %d was not extended before %s, and the worker registry may have lost who had it since; claiming again",
			ErrTaken, r.Worker, g.safe.load().time.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkServer takes the incarnation from v if it no longer answers: the process may have been paused
// since it asked, so that the time, or the answer to the swap, is another server's. It asks again only
// where the tolerance between servers decides whether the lease has run out.
func (g *lossGuard) checkServer(ctx context.Context, v *view, held Record) error {
	limit := held.Horizon
	if g.short {
		limit = earlier(limit, g.safe.load().time)
	}
	if v.epoch.Incarnation == "" || g.latest(*v).Add(g.opts.Tolerance).Before(limit) {
		return nil
	}
	latest := *v
	err := g.readEpoch(ctx, &latest)
	if latest.epoch.Incarnation != v.epoch.Incarnation {
		v.epoch.Incarnation = ""
	}
	return err
}

// checkHorizon reports that the lease has run out: others may have held the worker ID since, and the
// registry have lost that. They went by the clock of the server before, which may be ahead of the
// present one's by the tolerance. This machine's clock has to agree, because a registry whose clock
// is wrong must not end all leases; after a start from the file alone that clock was not checked,
// and does not count.
func (g *lossGuard) checkHorizon(v view, held Record, fromFile bool) error {
	now := g.latest(v)
	if r := v.epoch; r.Incarnation == "" || r.Untracked || r.Incarnation != held.Incarnation {
		now = now.Add(g.opts.Tolerance)
	}
	if !fromFile {
		now = earlier(now, g.clock.wall().Add(g.opts.Tolerance))
	}
	if v.epoch.Lossy && !now.Before(held.Horizon) {
		return fmt.Errorf("%w: the lease of worker ID %d ran out at %s, and the worker registry may have lost who had it since; claiming again",
			ErrTaken, held.Worker, held.Horizon.UTC().Format(time.RFC3339))
	}
	return nil
}
