package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A returnRule is a rule for stores that are Returners.
func returnRule(name, why string, check func(context.Context, *bed, returner) error) storeRule {
	return storeRule{name, why, func(ctx context.Context, b *bed) error {
		s, err := b.openWith(ctx, order)
		if r, ok := s.(returner); ok && err == nil {
			return check(ctx, b, r)
		}
		return err
	}}
}

type returner interface {
	segment.Store
	segment.Returner
}

func returnRules() []storeRule {
	return []storeRule{
		returnRule("return/tail", "the next range begins where the returned one did", returnTail),
		returnRule("return/moved on", "nothing goes back once somebody allocated behind it", returnMovedOn),
		returnRule("return/wrong", "what is no range, or of another tag, is refused and changes nothing", returnWrong),
		returnRule("return/lost reply then equal step", "a return is sent once: a repeated one would take an equal range from its new owner", returnLostReply),
		returnRule("return/racing", "whatever becomes of a return, no two callers own the same ID", returnRacing),
	}
}

func returnTail(ctx context.Context, b *bed, s returner) error {
	got, err := s.Advance(ctx, "order", 100)
	if err != nil {
		return err
	}
	half := leaf.Range{Start: got.Range.Start + got.Range.Len()/2, End: got.Range.End}
	return first(
		s.Return(ctx, "order", half),
		b.standsAt(ctx, s, "order", half.Start),
		b.advance(ctx, s, "order", 10, leaf.Range{Start: half.Start, End: half.Start + 10}),
		s.Return(ctx, "order", leaf.Range{Start: half.Start, End: half.Start + 10}),
		b.advance(ctx, b.open(), "order", 0, leaf.Range{Start: half.Start, End: half.Start + 2000}))
}

func returnMovedOn(ctx context.Context, b *bed, s returner) error {
	if err := first(
		b.advance(ctx, s, "order", 100, leaf.Range{Start: 1, End: 101}),
		b.advance(ctx, b.open(), "order", 1, leaf.Range{Start: 101, End: 102})); err != nil {
		return err
	}
	return first(
		fails("return a range that another one follows", s.Return(ctx, "order", leaf.Range{Start: 51, End: 101})),
		b.standsAt(ctx, s, "order", 102),
		b.advance(ctx, s, "order", 1, leaf.Range{Start: 102, End: 103}))
}

func returnWrong(ctx context.Context, b *bed, s returner) error {
	if err := b.advance(ctx, s, "order", 100, leaf.Range{Start: 1, End: 101}); err != nil {
		return err
	}
	for _, r := range []leaf.Range{{}, {Start: 101, End: 101}, {Start: 200, End: 101}, {Start: -1, End: 101}, {Start: 101, End: 200}, {Start: 50, End: 100}} {
		if err := fails(fmt.Sprintf("return %v when the counter is at 101", r), s.Return(ctx, "order", r)); err != nil {
			return err
		}
	}
	for _, name := range []string{"nothing", "Order", "order ", "ordér", "orde", "orde_", ""} {
		if err := fails(fmt.Sprintf("return to %q", name), s.Return(ctx, name, leaf.Range{Start: 51, End: 101})); err != nil {
			return err
		}
	}
	return first(b.standsAt(ctx, s, "order", 101), b.advance(ctx, s, "order", 1, leaf.Range{Start: 101, End: 102}))
}

// returnLostReply loses the reply of a return whose IDs another client then gets as
// an equal range. The first client's store is used on, and closed: it must not
// repeat the return in its own time.
func returnLostReply(ctx context.Context, b *bed, s returner) error {
	var dealt Ranges
	f := &Faulty{Store: s}
	f.Plan(func(c Call) (fault Fault) {
		if c.Op == OpReturn {
			fault.After = errReplyLost
		}
		return fault
	})
	got, err := f.Advance(ctx, "order", 100)
	if err != nil {
		return err
	}
	used, unused := split(got.Range)
	dealt.Add(used)
	err = is("return", f.Return(ctx, "order", unused), errReplyLost)
	other := b.open()
	if err := first(err, take(ctx, other, "order", &dealt, unused.Len()), take(ctx, s, "order", &dealt, 1, 0)); err != nil {
		return err
	}
	again, err := b.reopen(s)
	if err != nil {
		return err
	}
	return first(take(ctx, again, "order", &dealt, 1), take(ctx, other, "order", &dealt, unused.Len()), dealt.Check())
}

func split(r leaf.Range) (used, unused leaf.Range) {
	middle := r.Start + (r.Len()+1)/2
	return leaf.Range{Start: r.Start, End: middle}, leaf.Range{Start: middle, End: r.End}
}

// returnRacing has clients return half of what they get, some of them cut short,
// while others take ranges of the same length.
func returnRacing(ctx context.Context, b *bed, s returner) error {
	var dealt Ranges
	stores := []segment.Store{s, b.open(), b.open()}
	if err := together(9, func(i int) error {
		mine := stores[i%len(stores)]
		for round := range 20 {
			if i >= 6 {
				if err := take(ctx, mine, "order", &dealt, 5); err != nil {
					return err
				}
				continue
			}
			limit := time.Minute
			if i%2 == 0 {
				limit = time.Duration(round) * 50 * time.Microsecond
			}
			if err := useHalf(ctx, mine, &dealt, limit); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return first(take(ctx, s, "order", &dealt, 1000), dealt.Check())
}

// useHalf takes 10 IDs, deals the first half and returns the rest within limit.
func useHalf(ctx context.Context, s segment.Store, dealt *Ranges, limit time.Duration) error {
	got, err := s.Advance(ctx, "order", 10)
	if err != nil {
		return err
	}
	used, unused := split(got.Range)
	dealt.Add(used)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return promptly("Return", func() { _ = s.(segment.Returner).Return(ctx, "order", unused) })
}
