package segment

import (
	"math"
	"time"
)

// LeafStep is Java Leaf's rule for the size of the next segment: twice the last
// one if that lived less than 15 minutes, unless this exceeds 1,000,000; the same
// if it lived less than 30; else half, but not below the tag's own step. Beyond
// Java it never stays below the tag's step, so that a raised one is taken up.
// Source: SegmentIDGenImpl.updateSegmentFromDb of Meituan-Dianping/Leaf.
func LeafStep(last, tagStep int64, lived time.Duration) int64 {
	const maxStep = 1_000_000
	next := last
	switch {
	case lived < 15*time.Minute:
		if last <= maxStep/2 {
			next = last * 2
		}
	case lived < 30*time.Minute:
	case last/2 >= tagStep:
		next = last / 2
	}
	return max(next, tagStep)
}

const (
	// growth is how many times larger than its predecessor an allocation may be.
	growth = 100

	// A rise of demand counts once two windows in a row have shown it, so that a
	// burst is answered at once and a single large batch is not taken for one.
	// Otherwise the average over demandMemory counts.
	demandWindow = 100 * time.Millisecond
	demandMemory = time.Minute
)

// adaptiveSize is how many IDs to allocate now, 0 for none. The stock is topped up
// to what the outage budget needs at rate once a tenth of that is used, in units
// of at least step and of what waiting callers are short of, and never beyond
// maxStock.
func adaptiveSize(stock, short, step, last, maxStock int64, rate float64, budget time.Duration) int64 {
	target := max(step, maxStock)
	if need := rate * budget.Seconds(); need < float64(target) {
		target = max(step, int64(need))
	}
	target = min(target, maxStock)
	if stock >= short && stock*10 >= target*9 {
		return 0
	}
	n := min(target-stock, growth*max(step, last))
	n = max(n, step, short-stock)
	return max(0, min(n, maxStock-stock))
}

// demand estimates how many IDs a second are asked for.
type demand struct {
	rate   float64   // the estimate
	window float64   // the rate of the last window
	at     time.Time // when that ended
	issued int64     // how many IDs had been issued by then
}

// observe takes in how many IDs have been issued by now.
func (d *demand) observe(now time.Time, issued int64) {
	elapsed := now.Sub(d.at)
	switch {
	case d.at.IsZero():
		d.at, d.issued = now, issued
		return
	case elapsed < demandWindow:
		return
	}
	seen := float64(max(0, issued-d.issued)) / elapsed.Seconds() // IDs may have been given back
	average := seen + (d.rate-seen)*math.Exp(-elapsed.Seconds()/demandMemory.Seconds())
	d.rate = max(average, min(seen, d.window))
	d.window, d.at, d.issued = seen, now, issued
}
