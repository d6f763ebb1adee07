package segment

import (
	"context"

	"github.com/leaf-id/leaf"
)

// DefaultBlock is how many IDs a [Cursor] takes at a time by default.
const DefaultBlock = 64

// A Cursor hands out the IDs of one tag to one goroutine. It takes them off the buffer in blocks,
// so that goroutines with a cursor each contend only for a block now and then. Two goroutines must
// not use it at the same time.
//
// The IDs of a cursor increase. Those of several interleave: a cursor may issue an ID after a
// larger one of another cursor, by as much as both their blocks.
//
// A cursor needs no Close. The rest of its last block is never issued: the buffer counts it as
// issued and does not give it back. After the end of the buffer or its tag, its cursors fail as the
// buffer does. IDs that an operator takes out of use are dropped from their blocks too.
type Cursor struct {
	next, end int64   // the rest of the block
	buffer    *Buffer // that the block came from
	block     int64
	set       *Set // to look the buffer up in; nil: it stays the same
	tag       string

	_ [2*cacheLine - 56]byte // keeps the cursors of other goroutines off its cache lines
}

// Cursor returns a cursor that takes block IDs at a time, fewer at the end of a grant and one after
// it had to wait for the store; 0 means [DefaultBlock], and more than [Options.MaxStock] means
// that.
func (b *Buffer) Cursor(block int) *Cursor {
	return &Cursor{buffer: b, block: b.opts.blockSize(block)}
}

// Cursor returns a cursor over tag; see [Buffer.Cursor]. Whether the store has the tag, or
// can have it, is seen by the first [Cursor.Next].
func (s *Set) Cursor(tag string, block int) *Cursor {
	return &Cursor{set: s, tag: tag, block: s.opts.blockSize(block)}
}

func (o *Options) blockSize(block int) int64 {
	if block < 1 {
		block = DefaultBlock
	}
	return min(int64(block), o.MaxStock)
}

// Next returns the next ID. Its errors are those of [Buffer.Next], or of [Set.Next].
func (c *Cursor) Next(ctx context.Context) (int64, error) {
	if c.next < c.end && c.next >= c.buffer.cursorFloor.Load() {
		c.next++
		return c.next - 1, nil
	}
	return c.nextBlock(ctx)
}

// nextBlock returns the first ID of a new block.
func (c *Cursor) nextBlock(ctx context.Context) (int64, error) {
	if c.set != nil {
		b, err := c.set.buffer(ctx, c.tag)
		if err != nil {
			return 0, err
		}
		c.buffer = b
	}
	c.next, c.end = 0, 0 // the buffer has ended, or dropped the rest
	r, err := c.buffer.takeSome(ctx, c.block)
	if err != nil {
		return 0, err
	}
	c.next, c.end = r.Start+1, r.End
	return r.Start, nil
}

// takeSome returns 1 … n IDs that follow one another.
func (b *Buffer) takeSome(ctx context.Context, n int64) (leaf.Range, error) {
	s := b.current.Load()
	if r := s.reserve(n); !r.Empty() {
		if s.due(r.End - s.start) {
			b.topUp(ctx)
		}
		return r, nil
	}
	return b.takeOne(ctx, s)
}
