package segment

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// TakeContiguous returns n IDs that follow one another. Its errors are those of
// [Buffer.Take], and one that wraps [leaf.ErrNotContiguous] where the store deals in
// smaller units. IDs of one tag only go up, so what is in memory below the IDs that it
// returns is never issued: nothing where no other process takes from the tag, else at
// most the stock.
func (b *Buffer) TakeContiguous(ctx context.Context, n int) (leaf.Range, error) {
	if err := b.checkCount(n); err != nil {
		return leaf.Range{}, err
	}
	s := b.current.Load()
	if r := s.reserveAll(int64(n)); !r.Empty() {
		if s.due(r.End - s.start) {
			b.topUp()
		}
		return r, nil
	}
	return b.takeContiguous(ctx, int64(n))
}

func (b *Buffer) takeContiguous(ctx context.Context, n int64) (leaf.Range, error) {
	timer := time.NewTimer(b.opts.Wait)
	defer timer.Stop()
	for small := 0; ; {
		b.mu.Lock()
		if r := b.cut(n); !r.Empty() {
			if _, due := b.size(time.Now()); due {
				b.startRefill()
			}
			b.mu.Unlock()
			return r, nil
		}
		if err := b.end; err != nil {
			b.mu.Unlock()
			return leaf.Range{}, err
		}
		b.run = max(b.run, n)
		fed, err := b.waitForStore(ctx, n, timer)
		if err != nil {
			return leaf.Range{}, err
		}
		if fed {
			timer.Reset(b.opts.Wait)
			if granted := b.tooSmall(n); granted > 0 {
				small++
				if small == maxSmall {
					return leaf.Range{}, fmt.Errorf("tag %q: %w: %d were asked for, and the store grants %d at once",
						b.tag, leaf.ErrNotContiguous, n, granted)
				}
			}
		}
	}
}

// maxSmall is how many small grants that do not follow the one before show that a store
// does not deal in larger ones.
const maxSmall = 2

// tooSmall returns the size of the last grant if that was asked for n IDs, has fewer, and
// does not follow the one before; else 0.
func (b *Buffer) tooSmall(n int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &b.account
	if a.asked < n || a.granted >= n || a.follows {
		return 0
	}
	return a.granted
}

// cut takes the first run of n IDs off the stock and drops what is below it; b.mu is
// held. The range is empty, and the stock as it was, where there is no such run.
func (b *Buffer) cut(n int64) (run leaf.Range) {
	if b.end != nil || !b.hasRun(n) {
		return leaf.Range{}
	}
	s := b.current.Load()
	rest := s.seal() // callers that are late get nothing of s
	b.account.retired += rest.Start - s.start
	left := newSpan(Grant{Range: rest})
	left.grant = s.grant
	spans := append([]*span{left}, b.queue...) // no other caller reaches them before the end
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

// firstRun returns where in spans the first run of n IDs begins, -1 if there is none.
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

// TakeContiguous returns n IDs of tag that follow one another; see
// [Buffer.TakeContiguous].
func (s *Set) TakeContiguous(ctx context.Context, tag string, n int) (leaf.Range, error) {
	b, err := s.buffer(tag)
	if err != nil {
		return leaf.Range{}, err
	}
	return b.TakeContiguous(ctx, n)
}
