package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

type catalog interface {
	segment.Store
	segment.Catalog
}

func catalogRules() []storeRule {
	return []storeRule{
		ruleOf("catalog/create twice", "a name that is taken is leaf.ErrTagExists, and the tag stays as it was", createTwice),
		ruleOf("catalog/create at once", "of several that create the same tag at once, one succeeds", createAtOnce),
		ruleOf("catalog/create invalid", "what Tag.Check refuses is leaf.ErrInvalid and is not created", createInvalid),
		ruleOf("catalog/create lookalike", "a name like an existing one is a counter of its own, or is refused", createLookalike),
		ruleOf("catalog/alter", "the given fields change, the others stay, and the tag is returned as it then is", alter),
		ruleOf("catalog/alter to the same", "a change to what is so already succeeds", alterToSame),
		ruleOf("catalog/alter invalid", "what Change.Check refuses is leaf.ErrInvalid and changes nothing", alterInvalid),
		ruleOf("catalog/options", "options come back as they were set, also those of newer releases, and end with the tag", tagOptions),
		ruleOf("catalog/strict order", "IDs of a tag with strict order come from AdvanceStrict alone, exactly and in order", strictOrder),
		ruleOf("catalog/periods", "each period has a counter of its own, which begins at the tag's max_id and never comes back", periods),
		ruleOf("catalog/masks", "the numbers of a tag with a mask come from AdvanceMasked alone; the mask never changes, and its name gets no other one", masks),
		ruleOf("catalog/lower", "lowering max_id is leaf.ErrRegression and changes nothing, unless forced", lower),
		ruleOf("catalog/raise while advancing", "raising max_id beside advances repeats no ID", raiseWhileAdvancing),
		ruleOf("catalog/unknown", "to alter or delete an unknown tag, or a lookalike, is leaf.ErrUnknownTag and changes nothing",
			catalogUnknown),
		ruleOf("catalog/delete", "a deleted tag is unknown; created again it begins at its new max_id or where it ended, "+
			"whichever is higher", deleteTag),
		ruleOf("catalog/delete while advancing", "a tag that is deleted and created at once repeats no ID", deleteWhileAdvancing),
	}
}

func createTwice(ctx context.Context, b *fixture, c catalog) error {
	again := segment.Tag{Name: "order", MaxID: 9, Step: 9, Options: segment.Describe("again")}
	return first(
		c.Create(ctx, order),
		is("create again", c.Create(ctx, again), leaf.ErrTagExists),
		is("create the same again", b.open().(catalog).Create(ctx, order), leaf.ErrTagExists),
		b.lists(ctx, c, order))
}

func createAtOnce(ctx context.Context, b *fixture, c catalog) error {
	stores := []catalog{c, b.open().(catalog)}
	created := make([]bool, 8)
	err := together(len(created), func(i int) error {
		err := stores[i%2].Create(ctx, segment.Tag{Name: "order", MaxID: 1, Step: int64(i + 1)})
		if created[i] = err == nil; created[i] {
			return nil
		}
		return is("create", err, leaf.ErrTagExists)
	})
	n := 0
	for i, yes := range created {
		if yes {
			n++
			err = first(err, b.lists(ctx, c, segment.Tag{Name: "order", MaxID: 1, Step: int64(i + 1)}))
		}
	}
	if err == nil && n != 1 {
		return fmt.Errorf("%d calls created the tag", n)
	}
	return err
}

func createInvalid(ctx context.Context, b *fixture, c catalog) error {
	tags := []segment.Tag{
		{Name: "a", Step: 0}, {Name: "b", Step: -1}, {Name: "c", Step: segment.MaxStep + 1}, {Name: "d", Step: 1, MaxID: -1},
		{Name: "e", Step: 1, Options: segment.Describe(strings.Repeat("x", segment.MaxOptionValue+1))}, {Name: "f", Step: 1, Options: segment.Describe("\xff")},
	}
	for _, name := range badNames {
		tags = append(tags, segment.Tag{Name: name, Step: 1})
	}
	for _, tag := range tags {
		if err := b.refuses(ctx, c, tag); err != nil {
			return err
		}
	}
	return b.lists(ctx, c)
}

func createLookalike(ctx context.Context, b *fixture, c catalog) error {
	if err := c.Create(ctx, segment.Tag{Name: "café", MaxID: 1, Step: 10}); err != nil {
		return err
	}
	want := []segment.Tag{{Name: "café", MaxID: 11, Step: 10}}
	for i, name := range lookalikes {
		tag := segment.Tag{Name: name, MaxID: int64(1000 * (i + 1)), Step: 5}
		err := c.Create(ctx, tag)
		if errors.Is(err, leaf.ErrTagExists) {
			continue
		}
		if err := first(err, b.advance(ctx, c, name, 0, leaf.Range{Start: tag.MaxID, End: tag.MaxID + 5})); err != nil {
			return err
		}
		tag.MaxID += 5
		want = append(want, tag)
	}
	return first(b.advance(ctx, c, "café", 0, leaf.Range{Start: 1, End: 11}), b.lists(ctx, c, want...))
}

func alter(ctx context.Context, b *fixture, c catalog) error {
	want := order
	if err := c.Create(ctx, want); err != nil {
		return err
	}
	for _, step := range []struct {
		change segment.Change
		apply  func()
	}{
		{segment.Change{Step: new(int64(50))}, func() { want.Step = 50 }},
		{segment.Change{MaxID: new(int64(1000))}, func() { want.MaxID = 1000 }},
		{segment.Change{Options: segment.TagOptions{"description": "订单 'x'"}}, func() { want.Options = segment.Describe("订单 'x'") }},
		{segment.Change{Options: segment.TagOptions{"description": ""}}, func() { want.Options = nil }},
		{segment.Change{Step: new(int64(segment.MaxStep)), MaxID: new(int64(2000)), Options: segment.TagOptions{"description": "all"}},
			func() {
				want = segment.Tag{Name: "order", MaxID: 2000, Step: segment.MaxStep, Options: segment.Describe("all")}
			}},
	} {
		got, err := c.Alter(ctx, "order", step.change)
		step.apply()
		if err := first(err, b.same(got, want), b.lists(ctx, c, want)); err != nil {
			return fmt.Errorf("alter: %w", err)
		}
	}
	return b.advance(ctx, b.open(), "order", 0, leaf.Range{Start: 2000, End: 2000 + segment.MaxStep})
}

func alterToSame(ctx context.Context, b *fixture, c catalog) error {
	if err := c.Create(ctx, order); err != nil {
		return err
	}
	for _, change := range []segment.Change{{}, {Step: new(order.Step)}, {MaxID: new(order.MaxID)}, {Force: true},
		{Options: segment.TagOptions{"description": order.Options.Description()}}} {
		got, err := c.Alter(ctx, "order", change)
		if err := first(err, b.same(got, order), b.lists(ctx, c, order)); err != nil {
			return fmt.Errorf("alter: %w", err)
		}
	}
	return nil
}

func alterInvalid(ctx context.Context, b *fixture, c catalog) error {
	if err := c.Create(ctx, order); err != nil {
		return err
	}
	for _, change := range []segment.Change{
		{Step: new(int64(0))}, {Step: new(int64(-1))}, {Step: new(int64(segment.MaxStep + 1))},
		{Step: new(int64(5)), MaxID: new(int64(-1)), Force: true},
		{MaxID: new(int64(500)), Options: segment.TagOptions{"description": strings.Repeat("界", segment.MaxOptionValue+1)}}, {Options: segment.TagOptions{"description": "\xff"}},
	} {
		_, err := c.Alter(ctx, "order", change)
		if err := first(is("alter", err, leaf.ErrInvalid), b.lists(ctx, c, order)); err != nil {
			return err
		}
	}
	return nil
}

func lower(ctx context.Context, b *fixture, c catalog) error {
	if err := first(c.Create(ctx, order), b.advance(ctx, c, "order", 0, leaf.Range{Start: 1, End: 2001})); err != nil {
		return err
	}
	want := order
	want.MaxID = 2001
	_, err := c.Alter(ctx, "order", segment.Change{MaxID: new(int64(2000)), Step: new(int64(5))})
	if err := first(is("lower max_id", err, leaf.ErrRegression), b.lists(ctx, c, want)); err != nil || b.Caps.Units {
		return err
	}
	want.MaxID = 100
	got, err := c.Alter(ctx, "order", segment.Change{MaxID: new(int64(100)), Force: true})
	return first(err, b.same(got, want), b.advance(ctx, c, "order", 1, leaf.Range{Start: 100, End: 101}))
}

func raiseWhileAdvancing(ctx context.Context, b *fixture, c catalog) error {
	if err := c.Create(ctx, order); err != nil {
		return err
	}
	var got Ranges
	other := b.open()
	if err := together(6, func(i int) error {
		for range 15 {
			if i > 0 {
				if err := take(ctx, other, "order", &got, int64(i)*10); err != nil {
					return err
				}
				continue
			}
			if err := raise(ctx, c, &got); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return got.Check()
}

// raise raises the counter a little, possibly too late, and takes a range above it if it was in
// time.
func raise(ctx context.Context, c catalog, got *Ranges) error {
	tags, err := list(ctx, c)
	if err != nil {
		return err
	}
	to := tags["order"].MaxID + 100
	_, err = c.Alter(ctx, "order", segment.Change{MaxID: &to})
	late := errors.Is(err, leaf.ErrRegression)
	if err != nil && !late {
		return err
	}
	grant, err := c.Advance(ctx, "order", 1)
	if err != nil {
		return err
	}
	got.Add(grant.Range)
	if !late && grant.Range.Start < to {
		return fmt.Errorf("got %v after max_id was raised to %d", grant.Range, to)
	}
	return nil
}

func catalogUnknown(ctx context.Context, b *fixture, c catalog) error {
	cafe := segment.Tag{Name: "café", MaxID: 1, Step: 10}
	if err := c.Create(ctx, cafe); err != nil {
		return err
	}
	for _, name := range append([]string{"nothing"}, lookalikes...) {
		_, err := c.Alter(ctx, name, segment.Change{Step: new(int64(7)), MaxID: new(int64(70))})
		if err := first(
			is(fmt.Sprintf("alter %q where only %q exists", name, "café"), err, leaf.ErrUnknownTag),
			is(fmt.Sprintf("delete %q where only %q exists", name, "café"), c.Delete(ctx, name), leaf.ErrUnknownTag)); err != nil {
			return err
		}
	}
	return b.lists(ctx, c, cafe)
}

func deleteTag(ctx context.Context, b *fixture, c catalog) error {
	if err := first(
		c.Create(ctx, order),
		b.advance(ctx, c, "order", 0, leaf.Range{Start: 1, End: 2001}),
		c.Delete(ctx, "order"),
		b.lists(ctx, c)); err != nil {
		return err
	}
	_, err := c.Advance(ctx, "order", 0)
	return first(
		is("advance a deleted tag", err, leaf.ErrUnknownTag),
		is("delete a deleted tag", c.Delete(ctx, "order"), leaf.ErrUnknownTag),
		c.Create(ctx, segment.Tag{Name: "order", MaxID: 70, Step: 7}),
		b.advance(ctx, b.open(), "order", 0, leaf.Range{Start: 2001, End: 2008}),
		c.Delete(ctx, "order"),
		b.open().(catalog).Create(ctx, segment.Tag{Name: "order", MaxID: 5000, Step: 7}),
		b.advance(ctx, c, "order", 0, leaf.Range{Start: 5000, End: 5007}))
}

// persist repeats a change that loses to others, as on a Galera cluster, until it is done. After an
// error the change may have been made: a repeated one that finds it made returns already.
func persist(ctx context.Context, already error, change func() error) error {
	const most = 50
	err := change()
	for range most {
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err = change(); errors.Is(err, already) {
			return nil
		}
	}
	return err
}

// deleteWhileAdvancing has clients take ranges while another deletes the tag and creates it, several
// times. They pause for longer than their calls take: a Galera cluster undoes a deletion in favour of
// each Advance on another member, so that a dense row of them leaves it no turn.
func deleteWhileAdvancing(ctx context.Context, b *fixture, c catalog) error {
	if err := c.Create(ctx, order); err != nil {
		return err
	}
	var got Ranges
	var done atomic.Bool
	other := b.open()
	if err := together(4, func(i int) error {
		if i == 0 {
			defer done.Store(true)
			for range 10 {
				if err := persist(ctx, leaf.ErrUnknownTag, func() error { return c.Delete(ctx, "order") }); err != nil {
					return err
				}
				if err := persist(ctx, leaf.ErrTagExists, func() error { return c.Create(ctx, order) }); err != nil {
					return err
				}
				if grant, err := other.Advance(ctx, "order", 10); err == nil { // each life of the tag has a grant
					got.Add(grant.Range)
				}
			}
			return nil
		}
		for !done.Load() {
			start := time.Now()
			grant, err := other.Advance(ctx, "order", int64(i)*10)
			if err == nil { // else the tag is missing, or is deleted meanwhile
				got.Add(grant.Range)
			}
			time.Sleep(max(time.Millisecond, 5*time.Since(start)))
		}
		return nil
	}); err != nil {
		return err
	}
	return got.Check()
}
