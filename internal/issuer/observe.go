package issuer

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A Peeked says what would come next of a tag.
type Peeked struct {
	Tag   segment.Tag // as it is in the store
	Next  int64       // the next ID of this process if no other call comes first
	Stock int64       // how many IDs it holds; 0: Next is MaxID, and others may take it first
}

// Peek tells the next ID of a tag and takes none. It wraps [leaf.ErrUnknownTag].
func (t *Tags) Peek(ctx context.Context, name string) (Peeked, error) {
	tag, err := t.find(ctx, name)
	if err != nil {
		return Peeked{}, fmt.Errorf("peek at tag %q: %w", name, err)
	}
	p := Peeked{Tag: tag, Next: tag.MaxID}
	for _, st := range t.segments.Stats() {
		if st.Tag == name && st.Stock > 0 {
			p.Next, p.Stock = firstLeft(st.Segments), st.Stock
		}
	}
	return p, nil
}

// firstLeft returns the first ID that is left in memory.
func firstLeft(segments []segment.SegmentStats) int64 {
	for _, s := range segments {
		if s.Next < s.Range.End {
			return s.Next
		}
	}
	return 0
}

// find returns a tag as the store lists it.
func (t *Tags) find(ctx context.Context, name string) (segment.Tag, error) {
	if err := segment.CheckTagName(name); err != nil {
		return segment.Tag{}, err
	}
	for tag, err := range t.All(ctx) {
		if err != nil || tag.Name == name {
			return tag, err
		}
	}
	return segment.Tag{}, leaf.ErrUnknownTag
}

// An Observed says what came of [Tags.Observe].
type Observed struct {
	Tag     segment.Tag // as it then is; its description may be left out
	Dropped int64       // how many IDs this process dropped from memory

	// OthersBelow: other processes may still issue IDs below it, which they held before; 0:
	// none that were observed.
	OthersBelow int64
}

// Observe tells that IDs up to largest are in use that no process of ours issued. The
// counter moves above them, by advances whose ranges are discarded: never down, whatever
// others do at the same time. What this process holds below is dropped at once. It wraps
// [leaf.ErrUnknownTag], [leaf.ErrInvalid] or [leaf.ErrOverflow].
func (t *Tags) Observe(ctx context.Context, name string, largest int64) (Observed, error) {
	o, err := t.observe(ctx, name, largest)
	if err != nil {
		return Observed{}, fmt.Errorf("observe %d of tag %q: %w", largest, name, err)
	}
	audit(ctx, t.log, "tag observed", nil, &o.Tag, "tag", name, "largest", largest, "dropped", o.Dropped)
	return o, nil
}

func (t *Tags) observe(ctx context.Context, name string, largest int64) (Observed, error) {
	switch {
	case largest < 0:
		return Observed{}, fmt.Errorf("%w: it is negative", leaf.ErrInvalid)
	case largest == math.MaxInt64:
		return Observed{}, fmt.Errorf("%w: no ID is left above it", leaf.ErrOverflow)
	}
	tag, err := t.find(ctx, name)
	if err != nil {
		return Observed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	before := tag.MaxID
	if tag, err = t.liftAbove(ctx, tag, largest); err != nil {
		return Observed{}, err
	}
	// After the counter: a call that was under way before it may be granted IDs below.
	return Observed{Tag: tag, Dropped: t.segments.DropBelow(name, largest+1), OthersBelow: min(before, largest+1)}, nil
}

// liftAbove moves the counter of tag above largest.
func (t *Tags) liftAbove(ctx context.Context, tag segment.Tag, largest int64) (segment.Tag, error) {
	if _, small := t.store.(segment.Lifter); small {
		to := largest + 1
		lifted, err := t.alter(ctx, tag.Name, segment.Change{MaxID: &to})
		if errors.Is(err, leaf.ErrRegression) { // it stands above
			return tag, nil
		}
		return lifted, err
	}
	for tag.MaxID <= largest {
		grant, err := t.store.Advance(ctx, tag.Name, largest+1-tag.MaxID)
		if err != nil {
			return segment.Tag{}, failed(err)
		}
		tag.MaxID, tag.Step = grant.Range.End, grant.Step
	}
	return tag, nil
}
