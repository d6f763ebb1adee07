package drivertest

import (
	"cmp"
	"context"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/mask"
	"github.com/leaf-id/leaf/segment"
)

const maskEnd = 1_000_000 // one past the domain of maskedTag

// MaskKeys has the key that servers behind a store need for the suite.
var MaskKeys = segment.MaskKeys{"k1": mask.Key{1}}

var maskedTag = segment.Tag{Name: "order", MaxID: 5, Step: 10, Options: segment.TagOptions{
	segment.OptionMask: "k1:10^6:" + MaskKeys["k1"].Fingerprint(),
}}

// masks follows a tag with a mask through its life.
func masks(ctx context.Context, b *fixture, c catalog) error {
	s, ok := c.(segment.MaskedStore)
	if !ok {
		return is("create with a mask", c.Create(ctx, maskedTag), leaf.ErrUnsupported)
	}
	plain := segment.Tag{Name: "plain", MaxID: 1, Step: 10}
	if err := first(c.Create(ctx, maskedTag), c.Create(ctx, plain), b.lists(ctx, b.open(), maskedTag, plain)); err != nil {
		return err
	}
	refused := func() error {
		for _, n := range []int64{0, 1, 100} {
			_, err := b.open().Advance(ctx, "order", n)
			if err := is(fmt.Sprintf("advance a masked tag by %d", n), err, segment.ErrMasked); err != nil {
				return err
			}
		}
		_, err := c.(segment.StrictStore).AdvanceStrict(ctx, "order", "", 1)
		return is("advance a masked tag as a strict one", err, segment.ErrMasked)
	}
	exact := func(n, start int64) error {
		g, err := s.AdvanceMasked(ctx, "order", n)
		if err == nil && g.Masked != nil {
			g.Range, err = revealed(g.Masked)
		}
		if want := (leaf.Range{Start: start, End: start + n}); err != nil || g.Step < 1 || g.Range != want {
			return fmt.Errorf("advance a masked tag by %d: got %+v, %v, want %v", n, g, err, want)
		}
		return nil
	}
	_, unknown := s.AdvanceMasked(ctx, "nope", 1)
	_, noMask := s.AdvanceMasked(ctx, "plain", 1)
	_, invalid := s.AdvanceMasked(ctx, "order", 0)
	if err := first(refused(), exact(1, 5), exact(3, 6), refused(),
		is("advance an unknown tag", unknown, leaf.ErrUnknownTag), is("advance a tag without a mask", noMask, leaf.ErrUnknownTag),
		is("advance by 0", invalid, leaf.ErrInvalid), fixedMask(ctx, c)); err != nil {
		return err
	}
	now := maskedTag
	now.MaxID, now.Step = 1000, 20
	got, err := c.Alter(ctx, "order", segment.Change{MaxID: &now.MaxID, Step: &now.Step})
	if err := first(err, b.same(got, now), exact(1, 1000), refused()); err != nil {
		return err
	}
	now.MaxID = 1001
	if err := first(b.lists(ctx, b.open(), now, plain), c.Delete(ctx, "order")); err != nil {
		return err
	}
	_, gone := s.AdvanceMasked(ctx, "order", 1)
	return first(is("advance a deleted tag", gone, leaf.ErrUnknownTag), afterMask(ctx, b, c))
}

// revealed returns the numbers that a server has hidden, which follow one another.
func revealed(hidden []int64) (r leaf.Range, err error) {
	d, _ := mask.ParseDomain("10^6")
	m, err := mask.New(MaskKeys["k1"], d, "order")
	for i, h := range hidden {
		n, failed := m.Reveal(h)
		if err = cmp.Or(err, failed); err == nil && i > 0 && n != r.End {
			err = fmt.Errorf("%d follows %d", n, r.End-1)
		}
		if i == 0 {
			r.Start = n
		}
		r.End = n + 1
	}
	return r, err
}

// fixedMask has a mask neither end nor begin.
func fixedMask(ctx context.Context, c catalog) error {
	_, ended := c.Alter(ctx, "order", segment.Change{Options: segment.TagOptions{segment.OptionMask: ""}})
	_, begun := c.Alter(ctx, "plain", segment.Change{Options: maskedTag.Options})
	return first(is("end a mask", ended, leaf.ErrInvalid), is("begin a mask", begun, leaf.ErrInvalid))
}

// afterMask has new tags with the name of a deleted one, which had a mask: one with a mask could repeat
// its numbers, and one without begins above them.
func afterMask(ctx context.Context, b *fixture, c catalog) error {
	fresh := segment.Tag{Name: "order", MaxID: 1, Step: 10}
	wide := segment.Tag{Name: "wide", MaxID: 1, Step: 10, Options: segment.TagOptions{
		segment.OptionMask: "k1:63:" + MaskKeys["k1"].Fingerprint(),
	}}
	if err := first(c.Create(ctx, wide), c.Delete(ctx, "wide"),
		is("a name whose mask leaves no number", c.Create(ctx, segment.Tag{Name: "wide", MaxID: 1, Step: 10}), leaf.ErrInvalid)); err != nil {
		return err
	}
	_, none := b.open().Advance(ctx, "wide", 1)
	return first(is("advance a tag whose creation was refused", none, leaf.ErrUnknownTag),
		is("a mask for a deleted name", c.Create(ctx, maskedTag), leaf.ErrInvalid), c.Create(ctx, fresh),
		b.advance(ctx, b.open(), "order", 2, leaf.Range{Start: maskEnd, End: maskEnd + 2}), c.Delete(ctx, "order"),
		is("a mask for a name that was deleted twice", c.Create(ctx, maskedTag), leaf.ErrInvalid))
}
