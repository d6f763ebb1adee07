package segment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
)

// TakeContiguous returns n consecutive IDs. Its errors are those of [Buffer.Take], and one that
// wraps [leaf.ErrNotContiguous] if the store deals in smaller units. IDs of one tag only rise, so
// the buffer never issues the IDs in memory below the returned ones. If no other process takes from
// the tag, it loses no ID; otherwise at most the stock.
func (b *Buffer) TakeContiguous(ctx context.Context, n int) (leaf.Range, error) {
	if err := b.checkCount(n); err != nil {
		return leaf.Range{}, err
	}
	s := b.current.Load()
	if r := s.reserveAtLeast(int64(n), int64(n)); !r.Empty() {
		if s.due(r.End - s.start) {
			b.topUp(ctx)
		}
		return r, nil
	}
	return b.takeContiguous(ctx, int64(n))
}

// A runWait is a caller that waits for consecutive IDs. It gets the store's grant before other
// callers: they could take single IDs off each grant, and it would never have its run.
type runWait struct {
	need int64 // how many; 0: it has them
	run  leaf.Range
}

func (b *Buffer) takeContiguous(ctx context.Context, n int64) (leaf.Range, error) {
	timer := time.NewTimer(b.opts.Wait)
	defer timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &runWait{need: n, run: b.cut(n)}
	b.runs = append(b.runs, w)
	defer func() { b.runs = slices.DeleteFunc(b.runs, func(o *runWait) bool { return o == w }) }()
	for small := 0; w.run.Empty(); {
		if b.end != nil {
			return leaf.Range{}, b.end
		}
		if q := b.strict.Load(); q != nil {
			b.mu.Unlock()
			run, err := q.takeRun(ctx, n)
			b.mu.Lock()
			return run, err
		}
		fed, err := b.waitForStore(ctx, &w.need, timer)
		switch {
		case !w.run.Empty(): // also where ctx ended at the same time
		case err != nil:
			return leaf.Range{}, err
		case fed:
			timer.Reset(b.opts.Wait)
			if b.tooSmall(n) {
				small++
			}
			if small == maxSmall {
				return leaf.Range{}, fmt.Errorf("tag %q: %w: %d were asked for, and the store grants %d at once",
					b.tag, leaf.ErrNotContiguous, n, b.account.granted)
			}
		}
	}
	if _, due := b.size(time.Now()); due {
		b.startRefill(ctx)
	}
	return w.run, nil
}

// longestRun is the largest number of IDs that a waiting caller needs in one range; b.mu is held.
func (b *Buffer) longestRun() (n int64) {
	for _, w := range b.runs {
		n = max(n, w.need)
	}
	return n
}

// serveRuns gives the waiting callers the available runs; the caller holds b.mu.
func (b *Buffer) serveRuns() {
	for _, w := range b.runs {
		if w.need == 0 {
			continue
		}
		if w.run = b.cut(w.need); !w.run.Empty() {
			b.short -= w.need
			w.need = 0
		}
	}
}

// maxSmall is how many small grants that do not follow the one before show that a store
// does not deal in larger ones.
const maxSmall = 2

// tooSmall reports whether the last grant, requested with n IDs, has fewer and does not follow the
// one before; the caller holds b.mu.
func (b *Buffer) tooSmall(n int64) bool {
	a := &b.account
	return a.asked >= n && a.granted < n && !b.follows
}

// cut takes the first run of n IDs off the stock and drops the IDs below it; the caller holds b.mu.
// Without such a run the range is empty and the stock does not change.
func (b *Buffer) cut(n int64) (run leaf.Range) {
	if !b.hasRun(n) {
		return leaf.Range{}
	}
	s := b.current.Load()
	rest := s.seal() // late callers get nothing of s
	b.account.retired += rest.Start - s.start
	spans := append([]*span{s.cut(rest)}, b.queue...) // no other caller reaches them before the end
	if first := firstRun(spans, n); first >= 0 {
		for _, skipped := range spans[:first] {
			skipped.seal()
		}
		run = reserveRun(spans[first:], n)
	}
	for len(spans) > 1 && spans[0].remaining() == 0 {
		b.account.retired += spans[0].size
		spans = spans[1:]
	}
	b.queue = spans[1:]
	b.current.Store(spans[0])
	return run
}

// hasRun reports whether the stock has n IDs that follow one another; b.mu is held.
func (b *Buffer) hasRun(n int64) bool {
	return firstRun(append([]*span{b.current.Load()}, b.queue...), n) >= 0
}

// firstRun returns the position in spans of the first run of n IDs, or -1.
func firstRun(spans []*span, n int64) int {
	first, length, end := 0, int64(0), int64(0)
	for i, s := range spans {
		left := s.remaining()
		if left == 0 {
			continue
		}
		if length == 0 || s.start+s.size-left != end {
			first, length = i, 0
		}
		if length += left; length >= n {
			return first
		}
		end = s.start + s.size
	}
	return -1
}

// reserveRun takes n IDs, which follow one another, off the front of spans.
func reserveRun(spans []*span, n int64) leaf.Range {
	run := spans[0].reserve(n)
	for _, s := range spans[1:] {
		if run.Len() == n {
			break
		}
		run.End = s.reserve(n - run.Len()).End
	}
	return run
}

// TakeContiguous returns n IDs of tag that follow one another; see [Buffer.TakeContiguous].
func (s *Set) TakeContiguous(ctx context.Context, tag string, n int) (leaf.Range, error) {
	b, err := s.buffer(ctx, tag)
	if err != nil {
		return leaf.Range{}, err
	}
	return b.TakeContiguous(ctx, n)
}
