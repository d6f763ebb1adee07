package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

type returner interface {
	segment.Store
	segment.Returner
}

func returnRules() []storeRule {
	return []storeRule{
		ruleOf("return/tail", "the next range begins where the returned one did", returnTail, order),
		ruleOf("return/run", "what touching grants left goes back together", returnRun, order),
		ruleOf("return/moved on", "nothing goes back once another client allocated behind it", returnMovedOn, order),
		ruleOf("return/behind another", "a client that gave its range back remembers where the counter stood: below that it would look lost", returnBehind, order),
		ruleOf("return/wrong", "what is not a range, or of another tag, is refused and changes nothing", returnWrong, order),
		ruleOf("return/of no known write", "only the version of the very grant lets its rest go back", returnUnknownWrite, order),
		ruleOf("return/lowered and granted again",
			"a range that the store lost may be another client's by now: the counter's value does not tell", returnLowered, order),
		ruleOf("return/created anew and granted again",
			"a range that the store lost may be another client's by now: the counter's value does not tell", returnCreatedAnew, order),
		ruleOf("return/lost reply then equal step", "a return is sent once: a repeated one would take an equal range from its new owner", returnLostReply, order),
		ruleOf("return/racing", "whatever becomes of a return, no two callers own the same ID", returnRacing, order),
	}
}

func returnTail(ctx context.Context, b *fixture, s returner) error {
	got, err := s.Advance(ctx, "order", 100)
	if err != nil {
		return err
	}
	middle := got.Range.Start + got.Range.Len()/2
	if err := first(
		s.Return(ctx, "order", got, middle),
		b.standsAt(ctx, s, "order", middle)); err != nil {
		return err
	}
	next, err := s.Advance(ctx, "order", 10)
	if want := (leaf.Range{Start: middle, End: middle + 10}); err == nil && next.Range != want {
		err = fmt.Errorf("advance after the return: got %v, want %v", next.Range, want)
	}
	return first(
		err,
		s.Return(ctx, "order", next, middle),
		b.advance(ctx, b.open(), "order", 0, leaf.Range{Start: middle, End: middle + 2000}))
}

// returnRun returns what two grants left that follow on each other.
func returnRun(ctx context.Context, b *fixture, s returner) error {
	_, err1 := s.Advance(ctx, "order", 100)
	last, err2 := s.Advance(ctx, "order", 100)
	return first(
		err1, err2,
		s.Return(ctx, "order", last, 51),
		b.advance(ctx, b.open(), "order", 10, leaf.Range{Start: 51, End: 61}))
}

func returnMovedOn(ctx context.Context, b *fixture, s returner) error {
	got, err := s.Advance(ctx, "order", 100)
	return first(
		err,
		b.advance(ctx, b.open(), "order", 1, leaf.Range{Start: 101, End: 102}),
		fails("return a range that another one follows", s.Return(ctx, "order", got, 51)),
		b.standsAt(ctx, s, "order", 102),
		b.advance(ctx, s, "order", 1, leaf.Range{Start: 102, End: 103}))
}

// returnBehind has another client give back all that follows a grant, so that the counter stands
// at the end of that again, by another write.
func returnBehind(ctx context.Context, b *fixture, s returner) error {
	other, ok := b.open().(returner)
	if !ok {
		return nil
	}
	for range 20 { // the store may tell times apart by seconds
		mine, err1 := s.Advance(ctx, "order", 100)
		theirs, err2 := other.Advance(ctx, "order", 100)
		if err := first(
			err1, err2,
			other.Return(ctx, "order", theirs, theirs.Range.Start),
			fails("return a range that another one followed", s.Return(ctx, "order", mine, mine.Range.Start+50)),
			b.standsAt(ctx, s, "order", mine.Range.End)); err != nil {
			return err
		}
	}
	return nil
}

func returnWrong(ctx context.Context, b *fixture, s returner) error {
	got, err := s.Advance(ctx, "order", 100)
	if err != nil {
		return err
	}
	for _, r := range []leaf.Range{{}, {Start: 101, End: 101}, {Start: 200, End: 101}, {Start: -1, End: 101}, {Start: 101, End: 200},
		{Start: 50, End: 100}} {
		last := got
		last.Range.End = r.End
		if err := fails(fmt.Sprintf("return %v when the counter is at 101", r), s.Return(ctx, "order", last, r.Start)); err != nil {
			return err
		}
	}
	for _, name := range []string{"nothing", "Order", "order ", "ordér", "orde", "orde_", ""} {
		if err := fails(fmt.Sprintf("return to %q", name), s.Return(ctx, name, got, 51)); err != nil {
			return err
		}
	}
	return first(b.standsAt(ctx, s, "order", 101), b.advance(ctx, s, "order", 1, leaf.Range{Start: 101, End: 102}))
}

func returnUnknownWrite(ctx context.Context, b *fixture, s returner) error {
	got, err := s.Advance(ctx, "order", 100)
	if err != nil {
		return err
	}
	for _, version := range []string{"", "0", "1" + got.Version, got.Version + "1"} {
		last := got
		last.Version = version
		if err := fails(fmt.Sprintf("return by the version %q, which should be %q", version, got.Version),
			s.Return(ctx, "order", last, 51)); err != nil {
			return err
		}
	}
	return first(b.standsAt(ctx, s, "order", 101), s.Return(ctx, "order", got, 51))
}

func returnLowered(ctx context.Context, b *fixture, s returner) error {
	return returnLost(ctx, b, s, func(c segment.Catalog) error {
		_, err := c.Alter(ctx, "order", segment.Change{MaxID: new(int64(1)), Force: true})
		return err
	})
}

func returnCreatedAnew(ctx context.Context, b *fixture, s returner) error {
	return returnLost(ctx, b, s, func(c segment.Catalog) error {
		err := first(c.Delete(ctx, "order"), c.Create(ctx, order))
		if err == nil { // a new tag starts where the deleted one ended, unless by force
			_, err = c.Alter(ctx, "order", segment.Change{MaxID: new(order.MaxID), Force: true})
		}
		return err
	})
}

// returnLost loses a grant, as a promoted replica or a restored backup may, and then grants the
// same range to another client. The rest of the first grant must not go back.
func returnLost(ctx context.Context, b *fixture, s returner, lose func(segment.Catalog) error) error {
	mine, err := s.Advance(ctx, "order", 100)
	other := b.open()
	c, ok := other.(segment.Catalog)
	if err != nil || !ok {
		return err
	}
	theirs := mine
	for begun := time.Now(); theirs.Version == mine.Version; { // the store may tell times apart by seconds
		if time.Since(begun) > soon {
			return fmt.Errorf("writes %v apart have the version %q", soon, mine.Version)
		}
		if err := lose(c); err != nil {
			return err
		}
		if theirs, err = other.Advance(ctx, "order", 100); err != nil {
			return err
		}
		if theirs.Range != mine.Range {
			return fmt.Errorf("advance after a loss: got %v, want %v", theirs.Range, mine.Range)
		}
	}
	return first(
		fails("return what another client was granted meanwhile", s.Return(ctx, "order", mine, 51)),
		b.standsAt(ctx, other, "order", 101),
		b.advance(ctx, other, "order", 1, leaf.Range{Start: 101, End: 102}))
}

// returnLostReply loses the reply of a return whose IDs another client then gets as an equal range.
// The first client's store is used on, and closed: it must not repeat the return in its own time.
func returnLostReply(ctx context.Context, b *fixture, s returner) error {
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
	err = is("return", f.Return(ctx, "order", got, unused.Start), errReplyLost)
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

// returnRacing has clients that return half of their ranges, in part by cancelled calls, while
// others take ranges of the same length.
func returnRacing(ctx context.Context, b *fixture, s returner) error {
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
	return promptly("Return", func() { _ = s.(segment.Returner).Return(ctx, "order", got, unused.Start) })
}
