package worker

import (
	"fmt"
	"iter"
	"time"
)

// A span is a time, by the registry's clock, in which one incarnation of the registry answered
// without an interruption.
type span struct {
	incarnation string
	since, seen int64 // Unix milliseconds
}

// observe records the answering incarnation and its known age: by the records in v, and by the
// views of this keeper. A wrong clock does not count: its stamps would look older or younger after
// its correction.
func (k *Keeper) observe(v view) {
	incarnation := v.reign.Incarnation
	if !v.reign.Lossy || incarnation == "" || k.checkOffset(v.offset, "") != nil {
		return
	}
	since, before := k.standing(v), k.known
	k.known = span{incarnation, since, v.registry}
	k.count(func(s *Status) { s.Incarnation, s.IncarnationSince = incarnation, Time(since) })
	if before.incarnation != "" && before.incarnation != incarnation {
		k.log.Warn("the worker registry was restarted, or another server has taken over", "incarnation", incarnation, "before", before.incarnation)
	}
}

// standing returns since when the incarnation that answers is known to have stood: since its
// earliest stamp, or since now.
func (k *Keeper) standing(v view) int64 {
	if v.reign.Unmarked {
		return k.unmarked(v)
	}
	since := v.registry
	for s := range k.spans(v) {
		if s.incarnation == v.reign.Incarnation {
			since = min(since, s.since)
		}
	}
	return since
}

// unmarked does the same where others may have reigned within the incarnation. Then only the
// latest stamp counts, and only if writes followed it without a gap until now. A write under
// another incarnation ended the reign, too.
func (k *Keeper) unmarked(v view) int64 {
	var since, seen int64
	for s := range k.spans(v) {
		switch {
		case s.seen > v.registry+millis(k.opts.Tolerance): // by a clock that was ahead
		case s.incarnation == v.reign.Incarnation:
			since, seen = max(since, s.since), max(seen, s.seen)
		case s.incarnation != "":
			since = max(since, s.seen)
		}
	}
	if v.registry-seen > millis(2*k.opts.Extend) {
		return v.registry
	}
	return since
}

// spans yields the spans known to this keeper, and those of the records in v.
func (k *Keeper) spans(v view) iter.Seq[span] {
	return func(yield func(span) bool) {
		if !yield(k.known) {
			return
		}
		for _, r := range v.records {
			if !yield(span{r.Incarnation, r.Since, r.Seen}) {
				return
			}
		}
	}
}

// isStamped reports whether what this keeper writes by v carries a stamp.
func (k *Keeper) isStamped(v view) bool {
	return v.reign.Incarnation != "" && v.reign.Incarnation == k.known.incarnation && v.registry == k.known.seen
}

// checkDelay learns the registry's claim delay, which the first claim sets. A lease that may
// be used for longer than that after a loss must not be claimed, unless an operator says so.
func (k *Keeper) checkDelay(v view) error {
	if !v.reign.Lossy {
		return nil
	}
	var kept int64
	for _, r := range v.records {
		kept = max(kept, r.ClaimDelay)
	}
	own := millis(k.opts.ClaimDelay)
	if kept > 0 && kept < own {
		if !k.opts.raises {
			return fmt.Errorf("%w: it may issue times for %v after its record is lost, and other nodes wait for %v only: have all of them wait for %v",
				ErrClaimDelay, k.opts.ClaimDelay, time.Duration(kept)*time.Millisecond, k.opts.ClaimDelay)
		}
		k.log.Warn("the claim delay of the worker registry is raised", "from", time.Duration(kept)*time.Millisecond, "to", k.opts.ClaimDelay)
	}
	k.delay = max(kept, own)
	k.count(func(s *Status) { s.ClaimDelay = time.Duration(k.delay) * time.Millisecond })
	return nil
}

// settled returns from when on times may be issued under a claim that v shows, on a
// registry that may lose writes: by then each holder that such a registry does not know of any
// more has noticed. Until then the error is a [notYet]: v must be read again, since the
// registry may lose writes meanwhile.
func (h *heldLease) settled(v view) (floor int64, err error) {
	if !v.reign.Lossy {
		return h.lease.floor, nil
	}
	if v.reign.Incarnation != "" || v.registry-h.unnamed.seen > millis(2*h.opts.Extend) {
		h.unnamed.since = v.registry // since the last look others may have had the worker ID, and the registry lost that
	}
	h.unnamed.seen = v.registry
	since := h.unnamed.since
	if v.reign.Incarnation != "" {
		if err := h.checkOffset(v.offset, "the worker registry's"); err != nil {
			return 0, err
		}
		since = h.known.since
	}
	floor = since + h.delay
	if wait := floor - h.now(v); wait > 0 {
		return 0, &notYet{h.clock.ms() + wait, fmt.Errorf("%w: worker ID %d may be used from %s on, in %v: the registry may lose writes, and a holder that it does not know of any more must have noticed by then (claim_delay)",
			ErrWaiting, h.record.Worker, Time(floor).UTC().Format(time.RFC3339), (time.Duration(wait) * time.Millisecond).Round(time.Second))}
	}
	return max(floor, h.lease.floor), nil
}
