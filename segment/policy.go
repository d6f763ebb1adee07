package segment

import (
	"math"
	"slices"
	"time"
)

// LeafStep is Java Leaf's rule for the size of the next segment: twice the last one if that lived
// less than 15 minutes, unless this exceeds 1,000,000; the same if it lived less than 30; else
// half, but not below the tag's own step. Beyond Java it never stays below the tag's step, so that
// a raised one is taken up. Source: SegmentIDGenImpl.updateSegmentFromDb of Meituan-Dianping/Leaf.
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

// A rise of demand counts once two windows in a row have shown it, so that a single large
// batch is not taken for one. Otherwise the average over demandMemory counts.
const (
	demandWindow = 100 * time.Millisecond
	demandMemory = time.Minute
)

// adaptiveSize returns the number of IDs to allocate now, or 0. When less than nine tenths of the
// recent use, at least a step, are left, it fills the stock up to that. Callers who need more get
// more, but the stock never exceeds all IDs issued so far plus two steps: the store grants a
// process at most twice its issued IDs, plus two steps.
func adaptiveSize(stock, short, step, issued, recent, maxStock int64) int64 {
	target := min(max(step, recent), maxStock)
	if stock >= short && stock*10 >= target*9 || stock > issued+step {
		return 0
	}
	n := min(max(step, target-stock, short-stock), max(step, issued-stock))
	return max(0, min(n, maxStock-stock))
}

// recentUse counts the IDs issued within the last outage budget. It has samples of their number,
// the oldest first. All but the first are within the budget, and it counts from the first.
type recentUse []useSample

type useSample struct {
	at     time.Duration // since the set or buffer was made
	issued int64
}

const samplesPerBudget = 20

// record takes in how many IDs have been issued by now, and returns how many of them are recent.
func (u *recentUse) record(now, budget time.Duration, issued int64) (recent int64) {
	samples := *u
	switch n := len(samples); {
	case n == 0:
		samples = append(samples, useSample{at: now})
	case now-samples[n-1].at >= budget/samplesPerBudget:
		samples = append(samples, useSample{now, issued})
	}
	old := 0
	for old+1 < len(samples) && samples[old+1].at <= now-budget {
		old++
	}
	*u = slices.Delete(samples, 0, old)
	return max(0, issued-samples[0].issued) // IDs may have been given back
}

// demand estimates the requested IDs per second.
type demand struct {
	rate   float64       // the estimate
	window float64       // the rate of the last window
	at     time.Duration // when that ended, since the set or buffer was made
	issued int64         // how many IDs had been issued by then
}

// record takes in how many IDs have been issued by now.
func (d *demand) record(now time.Duration, issued int64) {
	elapsed := now - d.at
	if elapsed < demandWindow {
		return
	}
	seen := float64(max(0, issued-d.issued)) / elapsed.Seconds() // IDs may have been given back
	average := seen + (d.rate-seen)*math.Exp(-elapsed.Seconds()/demandMemory.Seconds())
	d.rate = max(average, min(seen, d.window))
	d.window, d.at, d.issued = seen, now, issued
}
