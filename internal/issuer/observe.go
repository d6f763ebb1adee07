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
	Next  int64       // the next ID of this process if no other call comes first; 0 for a tag with a mask
	Stock int64       // how many IDs it holds; 0: Next is MaxID, and others may take it first
}

// Peek returns the next ID of a tag without taking it. It wraps [leaf.ErrUnknownTag].
func (t *Tags) Peek(ctx context.Context, name string) (Peeked, error) {
	tag, err := t.find(ctx, name)
	if err != nil {
		return Peeked{}, fmt.Errorf("peek at tag %q: %w", name, err)
	}
	if tag.Options.Masked() {
		return Peeked{Tag: tag}, nil
	}
	p := Peeked{Tag: tag, Next: tag.MaxID}
	for _, st := range t.segments.Stats() {
		if st.Tag == name && st.Stock > 0 {
			p.Next, p.Stock = firstLeft(st.Segments), st.Stock
		}
	}
	return p, nil
}

// firstLeft returns the first ID in memory.
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

// An Observed is the result of [Tags.Observe].
type Observed struct {
	Tag     segment.Tag // as it then is; its description may be left out
	Dropped int64       // how many IDs this process dropped from memory

	// OthersBelow: other processes may still issue observed IDs below it from their stock; 0: they
	// cannot.
	OthersBelow int64
}

// Observe records that IDs up to largest are in use, issued by other programs. The counter moves
// above them, by advances whose ranges are discarded: never down, under any concurrent calls. This
// process drops its stock below at once. The error wraps [leaf.ErrUnknownTag], [leaf.ErrInvalid] or
// [leaf.ErrOverflow].
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
	tag, others, err := t.moveAbove(ctx, name, largest)
	if err != nil {
		return Observed{}, err
	}
	// After the counter: a call in flight before it may still bring IDs below.
	return Observed{Tag: tag, Dropped: t.segments.DropBelow(name, largest+1), OthersBelow: others}, nil
}

// An upstream is a store whose servers hold IDs in memory. As long as they do, an advance moves no
// counter, so they need calls of their own for the counter.
type upstream interface {
	ObserveTag(ctx context.Context, name string, largest int64) (now segment.Tag, othersBelow int64, err error)
	RaiseTag(ctx context.Context, name string, n int64) (segment.Tag, error)
}

// moveAbove moves the counter of a tag above largest. It returns the tag after the move, and the ID
// below which other processes may still issue from their stock.
func (t *Tags) moveAbove(ctx context.Context, name string, largest int64) (now segment.Tag, others int64, err error) {
	if up, ok := t.store.(upstream); ok {
		ctx, cancel := context.WithTimeout(ctx, changeTimeout)
		defer cancel()
		now, others, err = up.ObserveTag(ctx, name, largest)
		return now, others, t.failed(err)
	}
	tag, err := t.find(ctx, name)
	if err == nil {
		err = tag.Options.CheckCounter(largest + 1)
	}
	if err != nil {
		return segment.Tag{}, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	now, err = t.liftAbove(ctx, tag, largest)
	return now, min(tag.MaxID, largest+1), err
}

// liftAbove moves the counter of tag above largest. It also moves a higher one: otherwise a process
// with IDs below could give them back, and the counter with them.
func (t *Tags) liftAbove(ctx context.Context, tag segment.Tag, largest int64) (segment.Tag, error) {
	if _, small := t.store.(segment.Lifter); small {
		return t.liftAll(ctx, tag.Name, largest)
	}
	for moved := false; !moved || tag.MaxID <= largest; moved = true {
		grant, err := t.advance(ctx, tag.Name, max(1, largest+1-tag.MaxID))
		if errors.Is(err, segment.ErrPeriodic) || errors.Is(err, segment.ErrMasked) { // the least number of each period rises
			return t.liftAll(ctx, tag.Name, largest)
		}
		if err != nil {
			return segment.Tag{}, t.failed(err)
		}
		tag.MaxID, tag.Step = grant.Range.End, grant.Step
	}
	return tag, nil
}

// liftAll moves all counters of a tag above largest, on a store with several: one may be far below
// the highest.
func (t *Tags) liftAll(ctx context.Context, name string, largest int64) (tag segment.Tag, err error) {
	for n := int64(0); ; n = 2*n + 1 {
		tag, err = t.lift(ctx, name, n, largest+1)
		if !errors.Is(err, leaf.ErrRegression) { // else others drew more than n meanwhile
			return tag, err
		}
	}
}
