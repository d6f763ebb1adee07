package drivertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

func advanceRules() []storeRule {
	return []storeRule{
		ruleOf("advance/first range", "the first range begins at the tag's max_id, and n = 0 asks for exactly its step", firstRange, order),
		ruleOf("advance/from zero", "a tag whose max_id is 0 begins with ID 0", fromZero, segment.Tag{Name: "zero", MaxID: 0, Step: 10}),
		ruleOf("advance/explicit n", "a range holds at most the n IDs asked for, and one caller's ranges touch", explicitN, order),
		ruleOf("advance/step is reported", "each grant carries the tag's configured step, a changed one from the next call on", stepReported, order),
		ruleOf("advance/tags are independent", "advancing one tag moves no other", independentTags, order, segment.Tag{Name: "user", MaxID: 500, Step: 10}),
		ruleOf("advance/unknown tag", "a tag that was never created is leaf.ErrUnknownTag and does not come into being", unknownTag, order),
		ruleOf("advance/names byte for byte", "names that differ in case, accents, spaces or length are different tags", namesByteForByte, segment.Tag{Name: "café", MaxID: 1, Step: 10}),
		ruleOf("advance/impossible names", "a name that cannot be created is an unknown or invalid tag, not a failure of the store", impossibleNames, order),
		ruleOf("advance/negative n", "a negative n is leaf.ErrInvalid and changes nothing", negativeN, order),
		ruleOf("advance/overflow", "a counter never passes the largest int64: leaf.ErrOverflow, and nothing changes", overflow, segment.Tag{Name: "top", MaxID: math.MaxInt64 - 10, Step: 100}),
		ruleOf("advance/huge n", "the largest n overflows every counter above 0 and changes nothing", hugeN, order),
	}
}

func firstRange(ctx context.Context, b *fixture, s segment.Store) error {
	return first(
		b.advance(ctx, s, "order", 0, leaf.Range{Start: 1, End: 2001}),
		b.advance(ctx, s, "order", 0, leaf.Range{Start: 2001, End: 4001}),
		b.standsAt(ctx, s, "order", 4001))
}

func fromZero(ctx context.Context, b *fixture, s segment.Store) error {
	return first(
		b.advance(ctx, s, "zero", 1, leaf.Range{Start: 0, End: 1}),
		b.advance(ctx, s, "zero", 0, leaf.Range{Start: 1, End: 11}))
}

func explicitN(ctx context.Context, b *fixture, s segment.Store) error {
	next := order.MaxID
	for _, n := range []int64{1, 7, 2000, 1, 1_000_000, segment.MaxStep + 1, 3, 1 << 53} {
		if err := b.advance(ctx, s, "order", n, leaf.Range{Start: next, End: next + n}); err != nil {
			return err
		}
		next += n
	}
	return b.standsAt(ctx, s, "order", next)
}

func stepReported(ctx context.Context, b *fixture, s segment.Store) error {
	if err := checkSteps(ctx, s, order.Step); err != nil {
		return err
	}
	c, ok := s.(segment.Catalog)
	if !ok {
		return nil
	}
	if _, err := c.Alter(ctx, "order", segment.Change{Step: new(int64(50))}); err != nil {
		return err
	}
	if err := checkSteps(ctx, b.open(), 50); err != nil {
		return err
	}
	return checkSteps(ctx, s, 50)
}

// checkSteps checks that the step is reported with and without an n, and used.
func checkSteps(ctx context.Context, s segment.Store, step int64) error {
	for _, n := range []int64{5, 0} {
		got, err := s.Advance(ctx, "order", n)
		if err != nil {
			return err
		}
		if got.Step != step {
			return fmt.Errorf("advance by %d: grant says step %d, want %d", n, got.Step, step)
		}
		if n == 0 && got.Range.Len() > step {
			return fmt.Errorf("advance by 0: got %v, want at most the step of %d", got.Range, step)
		}
	}
	return nil
}

func independentTags(ctx context.Context, b *fixture, s segment.Store) error {
	return first(
		b.advance(ctx, s, "order", 100, leaf.Range{Start: 1, End: 101}),
		b.advance(ctx, s, "user", 0, leaf.Range{Start: 500, End: 510}),
		b.advance(ctx, s, "order", 100, leaf.Range{Start: 101, End: 201}),
		b.advance(ctx, s, "user", 0, leaf.Range{Start: 510, End: 520}))
}

func unknownTag(ctx context.Context, b *fixture, s segment.Store) error {
	for _, n := range []int64{0, 1} {
		_, err := s.Advance(ctx, "nothing", n)
		if err := is("advance an unknown tag", err, leaf.ErrUnknownTag); err != nil {
			return err
		}
	}
	tags, err := list(ctx, s)
	if _, ok := tags["nothing"]; ok {
		return errors.New("the unknown tag is listed now")
	}
	return first(err, b.standsAt(ctx, s, "order", 1))
}

// lookalikes are names that a careless comparison takes for "café".
var lookalikes = []string{
	"Café", "CAFÉ", "cafe", "cafe\u0301", "café ", " café", "café  ", "caf", "café1", "caf_", "caf%", "café/", "'café'", "café\u00a0",
}

func namesByteForByte(ctx context.Context, b *fixture, s segment.Store) error {
	for _, name := range lookalikes {
		_, err := s.Advance(ctx, name, 0)
		if err := is(fmt.Sprintf("advance %q where only %q exists", name, "café"), err, leaf.ErrUnknownTag); err != nil {
			return err
		}
	}
	return b.advance(ctx, s, "café", 0, leaf.Range{Start: 1, End: 11})
}

// badNames are names that [segment.CheckTagName] refuses.
var badNames = []string{"", "order\x00", "\x00", "or\nder", "order\xff", "\xc3", strings.Repeat("x", 129), strings.Repeat("x", 1<<16)}

func impossibleNames(ctx context.Context, b *fixture, s segment.Store) error {
	for _, name := range badNames {
		_, err := s.Advance(ctx, name, 0)
		if !errors.Is(err, leaf.ErrUnknownTag) && !errors.Is(err, leaf.ErrInvalid) {
			return fmt.Errorf("advance %.20q: got error %v, want leaf.ErrUnknownTag or leaf.ErrInvalid", name, err)
		}
	}
	return b.standsAt(ctx, s, "order", 1)
}

func negativeN(ctx context.Context, b *fixture, s segment.Store) error {
	for _, n := range []int64{-1, -2000, math.MinInt64} {
		_, err := s.Advance(ctx, "order", n)
		if err := is(fmt.Sprintf("advance by %d", n), err, leaf.ErrInvalid); err != nil {
			return err
		}
	}
	return b.advance(ctx, s, "order", 1, leaf.Range{Start: 1, End: 2})
}

func overflow(ctx context.Context, b *fixture, s segment.Store) error {
	const top = math.MaxInt64
	if b.Caps.Units {
		return nil
	}
	for _, n := range []int64{0, 11, 100, segment.MaxStep, top} {
		_, err := s.Advance(ctx, "top", n)
		if err := is(fmt.Sprintf("advance by %d with 10 left", n), err, leaf.ErrOverflow); err != nil {
			return err
		}
	}
	if err := first(
		b.advance(ctx, s, "top", 4, leaf.Range{Start: top - 10, End: top - 6}),
		b.advance(ctx, s, "top", 6, leaf.Range{Start: top - 6, End: top})); err != nil {
		return err
	}
	_, err := s.Advance(ctx, "top", 1)
	return is("advance at the very end", err, leaf.ErrOverflow)
}

func hugeN(ctx context.Context, b *fixture, s segment.Store) error {
	if b.Caps.Units {
		return nil
	}
	_, err := s.Advance(ctx, "order", math.MaxInt64)
	return first(
		is("advance by the largest int64", err, leaf.ErrOverflow),
		b.advance(ctx, s, "order", 0, leaf.Range{Start: 1, End: 2001}))
}
