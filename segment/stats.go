package segment

import (
	"iter"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
)

// Stats is a snapshot of one [Buffer].
type Stats struct {
	Tag      string
	Loaded   bool           // the store has granted at least once
	Segments []SegmentStats // the stock, the current segment first
	Stock    int64          // IDs in memory
	Issued   int64          // IDs issued since the start
	Step     int64          // the tag's own step as last heard; 0 before the first grant
	Rate     float64        // recent demand in IDs per second
	Lasts    time.Duration  // how long Stock lasts at Rate; 0 where Rate is 0

	Refills     int64 // grants received
	Failures    int64 // calls to the store that failed
	Regressions int64 // times the counter had gone backwards
	Refilling   bool  // a call to the store is in flight or due

	Calls     int64         // finished calls to the store
	CallTime  time.Duration // that they took
	Waits     int64         // how often a caller had to wait for the store
	Exhausted int64         // calls that failed for lack of IDs
	Lost      int64         // granted IDs that the buffer will never issue
	Returned  int64         // IDs given back to the store

	Err          error     // the store's present problem
	FailingSince time.Time // since when; zero while nothing is
}

// SegmentStats is a snapshot of one range in memory.
type SegmentStats struct {
	Range leaf.Range
	Next  int64 // the next ID; Range.End when the segment is empty
}

// Stats returns a snapshot; the figures come from the cursors, so that counting
// costs the callers nothing.
func (b *Buffer) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.totals(time.Now())
	for _, s := range append([]*span{b.current.Load()}, b.queue...) {
		if s.size > 0 {
			r := leaf.Range{Start: s.start, End: s.start + s.size}
			st.Segments = append(st.Segments, SegmentStats{Range: r, Next: s.start + s.issued()})
		}
	}
	return st
}

// stocked reports whether the buffer has IDs in memory.
func (b *Buffer) stocked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stock() > 0
}

// totals returns all but the segments, as they are now; b.mu is held.
func (b *Buffer) totals(now time.Time) Stats {
	demand := b.demand // as it would be seen now
	demand.record(now.Sub(b.opts.made), b.issued())
	st := Stats{
		Tag:         b.tag,
		Loaded:      b.account.grants > 0,
		Stock:       b.stock(),
		Issued:      b.issued(),
		Step:        b.account.step,
		Rate:        demand.rate,
		Refills:     b.account.grants,
		Failures:    b.account.failures,
		Regressions: b.guard.regressions.Load(),
		Refilling:   b.refill != nil,
		Calls:       b.account.calls,
		CallTime:    b.account.callTime,
		Waits:       b.account.waits,
		Exhausted:   b.account.exhausted,
		Lost:        b.account.lost,
		Returned:    b.account.returned,
		Err:         b.health.err,
	}
	if st.Err != nil {
		st.FailingSince = b.health.since
	}
	if st.Rate > 0 {
		st.Lasts = lasts(st.Stock, st.Rate)
	}
	return st
}

// Totals yields a snapshot of every tag in use, in any order, without its segments. It
// allocates nothing, so that many tags can be looked at often.
func (s serverSet) Totals() iter.Seq[Stats] {
	return totals(s.tags.all)
}

// Of returns a snapshot of one tag with its segments; false: the tag is not in use.
func (s serverSet) Of(tag string) (Stats, bool) {
	b := s.tags.get(tag)
	if b == nil {
		return Stats{}, false
	}
	return b.Stats(), true
}

// Failing yields snapshots as Totals does of the tags in use whose latest call to the store
// failed. Its cost does not depend on the others.
func (s serverSet) Failing() iter.Seq[Stats] {
	return func(yield func(Stats) bool) {
		for st := range totals(func() iter.Seq[*Buffer] { return slices.Values(s.each.failing.list()) }) {
			if st.Err != nil && !yield(st) { // else it has recovered meanwhile
				return
			}
		}
	}
}

func totals(buffers func() iter.Seq[*Buffer]) iter.Seq[Stats] {
	return func(yield func(Stats) bool) {
		now := time.Now()
		for b := range buffers() {
			b.mu.Lock()
			st := b.totals(now)
			b.mu.Unlock()
			if !yield(st) {
				return
			}
		}
	}
}

// lasts is for how long stock serves rate.
func lasts(stock int64, rate float64) time.Duration {
	const most = 1<<63 - 1
	if ns := float64(stock) / rate * float64(time.Second); ns < most {
		return time.Duration(ns)
	}
	return most
}

// loaded reports whether the store has granted at least once.
func (b *Buffer) loaded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.account.grants > 0
}

// setStep takes up a changed step of the tag.
func (b *Buffer) setStep(step int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if step > 0 {
		b.account.step = step
	}
}
