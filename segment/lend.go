package segment

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
)

// A loan is the latest range that a server lent to a process with a stock of its own, and the range
// before it if the same process had that one.
type loan struct {
	span       *span
	start, end int64
	version    string
}

// advance takes a range of up to n IDs off the stock, for a process with a stock of its own: a
// [Set] serves it as a [Store] serves the Set. n = 0 means the tag's own step. If the stock has
// fewer than n IDs, advance waits for the store to deliver once, and then gives a contiguous part
// of the stock. With the store failing it gives half of that, so that other callers still get some.
// Its errors are those of [Buffer.Next], and [leaf.ErrInvalid] for a negative n.
//
// before is the version of the caller's previous grant, or empty. The version proves that the
// caller has that range, and allows it to give back both ranges together.
func (b *Buffer) advance(ctx context.Context, n int64, before string) (Grant, error) {
	if n < 0 {
		return Grant{}, fmt.Errorf("tag %q: %w: advance by %d", b.tag, leaf.ErrInvalid, n)
	}
	if err := ctx.Err(); err != nil {
		return Grant{}, err
	}
	timer := time.NewTimer(b.opts.Wait)
	defer timer.Stop()
	for delivered := false; ; {
		if q := b.strict.Load(); q != nil {
			return Grant{}, fmt.Errorf("tag %q: %w", b.tag, q.refusal)
		}
		s, g, need := b.lend(ctx, n, before, delivered)
		if !g.Range.Empty() {
			if s.due(g.Range.End - s.start) {
				b.topUp(ctx)
			}
			return g, nil
		}
		fed, err := b.await(ctx, s, need, delivered, timer)
		switch {
		case err != nil && ctx.Err() != nil:
			return Grant{}, err
		case err != nil:
			if _, g, _ = b.lendHalf(n, before); !g.Range.Empty() {
				return g, nil
			}
			return Grant{}, err
		case fed:
			delivered = true
			timer.Reset(b.opts.Wait)
		}
	}
}

// lend takes up to n IDs off the current span. It takes no ID if the caller should wait for the need.
func (b *Buffer) lend(ctx context.Context, n int64, before string, delivered bool) (s *span, g Grant, need int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	need = b.lendable(n)
	s = b.current.Load()
	if !b.affords(ctx, need, delivered) {
		return s, Grant{}, need
	}
	return s, b.lendFrom(s, need, before), need
}

// lendHalf is lend where the store does not deliver.
func (b *Buffer) lendHalf(n int64, before string) (s *span, g Grant, need int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = b.current.Load()
	if s.remaining() == 0 && b.end == nil && b.pop() {
		s = b.current.Load()
	}
	need = min(b.lendable(n), (s.remaining()+1)/2)
	return s, b.lendFrom(s, need, before), need
}

// lendable is how many IDs a call for n may get; b.mu is held.
func (b *Buffer) lendable(n int64) int64 {
	if n == 0 {
		n = b.account.step
	}
	return max(1, min(n, b.opts.MaxStock))
}

// lendFrom takes up to n IDs off s; b.mu is held.
func (b *Buffer) lendFrom(s *span, n int64, before string) Grant {
	r := s.reserveAtLeast(1, n)
	if r.Empty() {
		return Grant{}
	}
	start := r.Start
	if l := b.loan; l != nil && l.span == s && l.end == r.Start && l.version == before {
		start = l.start
	}
	b.loan = &loan{span: s, start: start, end: r.End, version: rand.Text()}
	return Grant{Range: r, Step: max(1, b.account.step), Version: b.loan.version, Store: s.from.store}
}

// takeBack puts the unused end of a caller's loan, from start on, back into the stock, if the stock
// lost no ID since. It never accepts more than the loan: callers need no trust with the IDs of
// others. As with [Returner], after an error the IDs are lost, and a repeated call fails.
func (b *Buffer) takeBack(ctx context.Context, last Grant, start int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loan
	switch {
	case b.end != nil:
		return fmt.Errorf("return IDs: %w", b.end)
	case l == nil || l.version != last.Version || l.end != last.Range.End:
		return fmt.Errorf("return IDs of %q: %w: others were taken since", b.tag, leaf.ErrRegression)
	case start < l.start || start >= l.end:
		return fmt.Errorf("return IDs of %q: %w: %v is not an end of %v", b.tag, leaf.ErrInvalid, leaf.Range{Start: start, End: l.end},
			leaf.Range{Start: l.start, End: l.end})
	}
	b.loan = nil
	if l.span != b.current.Load() || !l.span.unreserve(l.end, start) {
		return fmt.Errorf("return IDs of %q: %w: others were taken since", b.tag, leaf.ErrRegression)
	}
	b.serveRuns()
	b.wakeAll()
	return nil
}

// unreserve moves the cursor back from end to start, unless it has moved since: then, or
// when s was sealed, it does nothing. The caller owned [start, end), and no longer does.
func (s *span) unreserve(end, start int64) bool {
	return s.used.CompareAndSwap(end-s.start, start-s.start)
}

// Advance lends a range of up to n IDs of tag; see Buffer.advance.
func (s serverSet) Advance(ctx context.Context, tag string, n int64, before string) (Grant, error) {
	b, err := s.buffer(ctx, tag)
	if err != nil {
		return Grant{}, err
	}
	return b.advance(ctx, n, before)
}

// Return puts the unused end of a loan back into the stock; see Buffer.takeBack.
func (s serverSet) Return(ctx context.Context, tag string, last Grant, start int64) error {
	b := s.tags.get(tag)
	if b == nil {
		return fmt.Errorf("return IDs of %q: %w", tag, leaf.ErrUnknownTag)
	}
	return b.takeBack(ctx, last, start)
}
