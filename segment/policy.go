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
	// growth is how many times larger than its predecessor an allocation may be:
	// a hundredfold burst is answered at once, while a single large batch does
	// not take the whole loss budget.
	growth = 100

	// A rate is measured over at least demandWindow, and forgotten over
	// demandMemory.
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

// demand estimates how many IDs a second are asked for: a rise counts at once, a
// fall over demandMemory.
type demand struct {
	rate   float64 // IDs per second
	at     time.Time
	issued int64
}

func (d *demand) observe(now time.Time, issued int64) {
	if d.at.IsZero() {
		d.at, d.issued = now, issued
		return
	}
	elapsed := now.Sub(d.at)
	seen := float64(issued-d.issued) / max(elapsed, demandWindow).Seconds()
	if seen >= d.rate {
		d.rate = seen
	}
	if elapsed < demandWindow {
		return
	}
	d.rate = seen + (d.rate-seen)*math.Exp(-elapsed.Seconds()/demandMemory.Seconds())
	d.at, d.issued = now, issued
}
