package drivertest

import (
	"context"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// options are two of a newer release: stores know no names.
var options = segment.TagOptions{"description": "d", "later": `x "y" 订单`, "other_one": "1"}

// keepOptions follows the options of a tag through its life.
func keepOptions(ctx context.Context, b *fixture, c catalog) error {
	tag := segment.Tag{Name: "order", MaxID: 1, Step: 10, Options: options}
	plain := segment.Tag{Name: "plain", MaxID: 1, Step: 10}
	if err := first(c.Create(ctx, plain), c.Create(ctx, tag), b.lists(ctx, b.open(), tag, plain)); err != nil {
		return err
	}
	if err := b.advance(ctx, b.open(), "order", 0, leaf.Range{Start: 1, End: 11}); err != nil {
		return err
	}
	tag.MaxID = 11
	for _, change := range []segment.Change{
		{Step: new(int64(20))},
		{Options: segment.TagOptions{"later": "z"}},
		{Options: segment.TagOptions{"description": "e"}},
		{Options: segment.TagOptions{"other_one": "", "third": "3"}, MaxID: new(int64(100))},
		{Options: segment.TagOptions{"later": "", "third": "", "description": ""}},
		{Options: options},
	} {
		want, err := change.Apply(tag)
		if err != nil {
			return err
		}
		got, err := c.Alter(ctx, "order", change)
		if err := first(err, b.same(got, want), b.lists(ctx, b.open(), want, plain)); err != nil {
			return fmt.Errorf("alter: %w", err)
		}
		tag = want
	}
	if err := formChanges(ctx, c); err != nil {
		return err
	}
	fresh := segment.Tag{Name: "order", MaxID: 500, Step: 10}
	return first(c.Delete(ctx, "order"), c.Create(ctx, fresh), b.lists(ctx, b.open(), fresh, plain), manyOptions(ctx, b, c, fresh, plain))
}

// formChanges has a form give way to a longer one alone, see [segment.TagOptions.Change].
func formChanges(ctx context.Context, c catalog) error {
	change := func(form string) error {
		_, err := c.Alter(ctx, "order", segment.Change{Options: segment.TagOptions{segment.OptionForm: form}})
		return err
	}
	return first(change("{n:3}"), is("a form of the same length", change("9{n:2}"), leaf.ErrInvalid),
		is("no form", change(""), leaf.ErrInvalid), change("9{n:3}"))
}

// manyOptions has more tags than a store reads at once.
func manyOptions(ctx context.Context, b *fixture, c catalog, tags ...segment.Tag) error {
	for i := range 40 {
		tag := segment.Tag{Name: fmt.Sprintf("tag-%d", i), MaxID: 1, Step: 1}
		if i%2 == 0 {
			tag.Options = segment.TagOptions{"later": tag.Name}
		}
		if err := c.Create(ctx, tag); err != nil {
			return err
		}
		tags = append(tags, tag)
	}
	return b.lists(ctx, b.open(), tags...)
}

// refuseOptions is for a state without a place for them.
func refuseOptions(ctx context.Context, b *fixture, c catalog) error {
	_, err := c.Alter(ctx, "order", segment.Change{Options: options})
	return first(
		is("create with options", c.Create(ctx, segment.Tag{Name: "order", MaxID: 1, Step: 10, Options: options}), leaf.ErrUnsupported),
		is("alter options", err, leaf.ErrUnsupported),
		b.lists(ctx, c))
}

func tagOptions(ctx context.Context, b *fixture, c catalog) error {
	if b.Caps.NoOptions {
		return refuseOptions(ctx, b, c)
	}
	return keepOptions(ctx, b, c)
}
