package segment

import (
	"context"
	"errors"
	"time"

	"github.com/leaf-id/leaf"
)

// dropBelow drops the IDs below a limit: the buffer's, those in the blocks of its cursors, and
// those that calls under way are going to be granted. It returns how many the buffer had itself.
func (b *Buffer) dropBelow(below int64) (dropped int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.floor = max(b.floor, below)
	if b.end != nil {
		return 0
	}
	dropped = b.dropStock(b.floor)
	b.wakeAll()
	if _, due := b.size(time.Now()); due && b.account.grants > 0 {
		b.startRefill(context.Background())
	}
	return dropped
}

// dropStock drops the IDs below a limit that the buffer and its cursors have, and returns how many
// the buffer had itself; b.mu is held.
func (b *Buffer) dropStock(below int64) (dropped int64) {
	b.cursorFloor.Store(below)
	var kept []*span
	for _, s := range append([]*span{b.current.Load()}, b.queue...) {
		rest := s.seal() // late callers get nothing of s
		b.account.retired += rest.Start - s.start
		above := aboveFloor(rest, below)
		dropped += rest.Len() - above.Len()
		if !above.Empty() || len(kept) == 0 {
			kept = append(kept, s.cut(above))
		}
	}
	for len(kept) > 1 && kept[0].remaining() == 0 {
		kept = kept[1:]
	}
	b.account.lost += dropped
	b.queue = kept[1:]
	b.current.Store(kept[0])
	b.loan = nil
	return dropped
}

// aboveFloor returns the part of r that is not below floor.
func aboveFloor(r leaf.Range, floor int64) leaf.Range {
	return leaf.Range{Start: max(r.Start, min(floor, r.End)), End: r.End}
}

// DropBelow drops the set's IDs of tag below an ID; see Buffer.dropBelow.
func (s serverSet) DropBelow(tag string, below int64) (dropped int64) {
	if b := s.tags.get(tag); b != nil {
		return b.dropBelow(below)
	}
	return 0
}

// Changed tells the set that this process created or changed a tag: the tag is usable at once, and
// has this step.
func (s serverSet) Changed(tag Tag) {
	if tag.Options[OptionForm] != "" {
		s.checkSoon() // the present form may be another one
	}
	b := s.tags.get(tag.Name)
	switch {
	case b == nil:
	case b.unknown():
		s.tags.remove(b)
	default:
		b.setStep(tag.Step)
	}
}

// unknown reports whether the buffer has ended because the store did not know its tag.
func (b *Buffer) unknown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Is(b.end, leaf.ErrUnknownTag)
}
