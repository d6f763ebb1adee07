package snowflake

import (
	"context"
	"fmt"

	"github.com/leaf-id/leaf"
)

// TakeContiguous returns n consecutive IDs of one tick. If n is more than a tick has, the error
// wraps [leaf.ErrNotContiguous]. The other errors are those of [Generator.Take]. The call may lose
// fewer than n IDs before the returned ones. It looks for a run of 2n-1 IDs, so it fails with
// [leaf.ErrExhausted] where [Options].Wait and [Options].MaxAhead together are too short for those.
func (g *Generator) TakeContiguous(ctx context.Context, n int) (leaf.Range, error) {
	if n < 1 {
		return leaf.Range{}, fmt.Errorf("take IDs: %w: n = %d is below 1", leaf.ErrInvalid, n)
	}
	if most := g.layout.MaxSequence() + 1; int64(n) > most {
		return leaf.Range{}, fmt.Errorf("take IDs: %w: only the %d IDs of one tick of %v follow one another, and %d are asked for",
			leaf.ErrNotContiguous, most, g.layout.Tick, n)
	}
	l, want := g.current.Load(), uint64(n)
	if from, ok := l.batchInTick(want, l.gate.Load()); ok {
		return l.appendRanges(nil, 0, from, from+want)[0], nil
	}
	pieces, err := g.wait(ctx, 2*want-1) // so many slots in a row have n of one tick among them
	if err != nil {
		return leaf.Range{}, err
	}
	var ranges []leaf.Range
	for _, p := range pieces {
		ranges = p.cursor.appendRanges(ranges, 0, p.from, p.to)
	}
	for _, r := range ranges {
		if r.Len() >= int64(n) {
			return leaf.Range{Start: r.Start, End: r.Start + int64(n)}, nil
		}
	}
	return leaf.Range{}, fmt.Errorf("take IDs: %w: the clock or the lease moved on meanwhile", leaf.ErrExhausted)
}

// batchInTick reserves n slots of one tick below the gate, and the rest of the tick before; or
// nothing.
func (l *leaseCursor) batchInTick(n, gate uint64) (from uint64, ok bool) {
	for {
		cursor := l.cursor.Load()
		from = cursor
		if from&l.mask+n > l.mask+1 {
			from = (from | l.mask) + 1
		}
		if from >= gate || gate-from < n {
			return 0, false
		}
		if l.cursor.CompareAndSwap(cursor, from+n) {
			if from+n == gate {
				l.gate.CompareAndSwap(gate, 0)
			}
			return from, true
		}
	}
}
