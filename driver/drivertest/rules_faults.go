package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	errReplyLost = errors.New("the reply was lost")
	errNotSent   = errors.New("the request was lost")
)

func faultRules() []storeRule {
	return []storeRule{
		ruleOf("faults/cancelled before", "a call whose context has ended returns its error, soon", cancelledBefore, order),
		ruleOf("faults/cancelled during", "a call whose context ends under way returns soon, and whatever became of it, its IDs are not dealt again", cancelledDuring, order),
		ruleOf("faults/error after commit", "the IDs of a call whose reply was lost are never dealt again", errorAfterCommit, order),
		ruleOf("faults/error before commit", "a call that did not reach the store changes nothing", errorBeforeCommit, order),
		ruleOf("faults/reopen", "a client opened later goes on exactly behind the last range", reopen, order),
		ruleOf("faults/use after Close", "a closed store answers with errors", useAfterClose, order),
	}
}

func cancelledBefore(ctx context.Context, b *fixture, s segment.Store) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, call := range calls(ended, s) {
		var err error
		if late := promptly(name, func() { err = call() }); late != nil {
			return late
		}
		if err := is(name+" with a cancelled context", err, context.Canceled); err != nil {
			return err
		}
	}
	return b.advance(ctx, s, "order", 5, leaf.Range{Start: 1, End: 6})
}

// calls returns one call of each method that s has, on the tag "order".
func calls(ctx context.Context, s segment.Store) map[string]func() error {
	all := map[string]func() error{
		"Advance": func() error { _, err := s.Advance(ctx, "order", 0); return err },
		"Tags":    func() error { _, err := list(ctx, s); return err },
	}
	if r, ok := s.(segment.Returner); ok {
		all["Return"] = func() error {
			return r.Return(ctx, "order", segment.Grant{Range: leaf.Range{Start: 0, End: 1}, Version: "1"}, 0)
		}
	}
	if c, ok := s.(segment.Catalog); ok {
		all["Create"] = func() error { return c.Create(ctx, segment.Tag{Name: "new", MaxID: 1, Step: 1}) }
		all["Alter"] = func() error { _, err := c.Alter(ctx, "order", segment.Change{Step: new(int64(1))}); return err }
		all["Delete"] = func() error { return c.Delete(ctx, "order") }
	}
	return all
}

func cancelledDuring(ctx context.Context, b *fixture, s segment.Store) error {
	var got Ranges
	for looks := range looksOfACall {
		if err := advanceWithin(endsAt(ctx, looks), s, &got); err != nil {
			return err
		}
	}
	stores := []segment.Store{s, b.open()}
	if err := together(8, func(i int) error {
		for round := range 40 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(round*(i+1))*20*time.Microsecond)
			err := advanceWithin(limited, stores[i%2], &got)
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, s := range []segment.Store{b.open(), s} {
		if err := recovers(func() error { return take(ctx, s, "order", &got, 0, 1) }); err != nil {
			return err
		}
	}
	return got.Check()
}

// advanceWithin advances until ctx ends, records the range if any, and checks that the call returns
// soon and does not blame the tag.
func advanceWithin(ctx context.Context, s segment.Store, got *Ranges) error {
	var grant segment.Grant
	var err error
	if late := promptly("Advance", func() { grant, err = s.Advance(ctx, "order", 10) }); late != nil {
		return late
	}
	if err == nil {
		got.Add(grant.Range)
	}
	if errors.Is(err, leaf.ErrUnknownTag) || errors.Is(err, leaf.ErrOverflow) || errors.Is(err, leaf.ErrInvalid) {
		return fmt.Errorf("a call cut short was reported as %w", err)
	}
	return nil
}

func errorAfterCommit(ctx context.Context, b *fixture, s segment.Store) error {
	f := &Faulty{Store: s}
	f.Next(OpAdvance, Fault{}, Fault{After: errReplyLost}, Fault{}, Fault{After: errReplyLost})
	for _, want := range []error{nil, errReplyLost, nil, errReplyLost, nil} {
		if _, err := f.Advance(ctx, "order", 10); !errors.Is(err, want) {
			return fmt.Errorf("advance: got error %v, want %v", err, want)
		}
	}
	var dealt Ranges
	dealt.Add(f.Granted("order")...)
	return first(
		take(ctx, b.open(), "order", &dealt, 10, 0),
		dealt.Check(),
		b.standsAt(ctx, s, "order", 1+dealt.Count()))
}

func errorBeforeCommit(ctx context.Context, b *fixture, s segment.Store) error {
	f := &Faulty{Store: s}
	f.Next(OpAdvance, Fault{Before: errNotSent})
	_, err := f.Advance(ctx, "order", 10)
	return first(
		is("advance", err, errNotSent),
		b.standsAt(ctx, s, "order", 1),
		b.advance(ctx, f, "order", 10, leaf.Range{Start: 1, End: 11}))
}

func reopen(ctx context.Context, b *fixture, s segment.Store) error {
	next := order.MaxID
	for range 3 {
		if err := first(
			b.advance(ctx, s, "order", 0, leaf.Range{Start: next, End: next + 2000}),
			b.advance(ctx, s, "order", 3, leaf.Range{Start: next + 2000, End: next + 2003})); err != nil {
			return err
		}
		next += 2003
		var err error
		if s, err = b.reopen(s); err != nil {
			return err
		}
	}
	return b.standsAt(ctx, s, "order", next)
}

// failAfterClose closes c, twice: from then on each call fails, at once.
func failAfterClose(c io.Closer, calls map[string]func() error) error {
	if err := c.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for name, call := range calls {
		var err error
		if late := promptly(name+" after Close", func() { err = call() }); late != nil {
			return late
		}
		if err := fails(name+" after Close", err); err != nil {
			return err
		}
	}
	return promptly("Close after Close", func() { _ = c.Close() })
}

// useAfterClose closes a store while a caller keeps its counter moving.
func useAfterClose(ctx context.Context, b *fixture, s segment.Store) error {
	c, ok := s.(io.Closer)
	if !ok {
		return nil
	}
	var dealt Ranges
	if err := take(ctx, s, "order", &dealt, 1); err != nil {
		return err
	}
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for take(calling, s, "order", &dealt, 1) == nil {
		}
	}()
	if err := failAfterClose(c, calls(ctx, s)); err != nil {
		return err // the other Advance may continue
	}
	return first(
		promptly("Advance beside Close", func() { <-over }),
		take(ctx, b.open(), "order", &dealt, 1),
		dealt.Check())
}
