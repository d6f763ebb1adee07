package leaf

import (
	"context"
	"fmt"
)

// A Range is the run of IDs [Start, End): Start is its first ID, End is one past
// its last. Ranges handed out satisfy 0 <= Start < End. The zero Range is empty.
type Range struct {
	Start, End int64
}

// Len reports how many IDs r holds.
func (r Range) Len() int64 {
	if r.Empty() {
		return 0
	}
	return r.End - r.Start
}

// Empty reports whether r holds no ID.
func (r Range) Empty() bool { return r.End <= r.Start }

// Overlaps reports whether r and s have an ID in common.
func (r Range) Overlaps(s Range) bool {
	return !r.Empty() && !s.Empty() && r.Start < s.End && s.Start < r.End
}

// String writes r as "[Start, End)".
func (r Range) String() string { return fmt.Sprintf("[%d, %d)", r.Start, r.End) }

// A Generator hands out IDs that are unique in its ID space. Its methods are safe for concurrent
// use.
type Generator interface {
	// Next returns one ID. ctx is looked at only when Next has to wait.
	Next(ctx context.Context) (int64, error)

	// Take appends n IDs to dst as few ranges, in the order of issue. On an error it returns dst
	// unchanged: IDs reserved for the call by then are never issued.
	Take(ctx context.Context, dst []Range, n int) ([]Range, error)
}
