package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

func listRules() []storeRule {
	return []storeRule{
		{"tags/none", "a state without tags lists none, without an error", listNone},
		{"tags/all", "every tag is listed once, with what was set and where its counter stands", listAll},
		ruleOf("tags/break", "a listing broken off releases what it held", listBreak, order, segment.Tag{Name: "a", Step: 1}, segment.Tag{Name: "z", Step: 1}),
		{"tags/odd names", "every legal name comes back byte for byte and is a counter of its own", oddNames},
		ruleOf("tags/updated", "Updated is the time of the last change, or zero", listUpdated, order),
	}
}

func listNone(ctx context.Context, b *fixture) error {
	tags, err := list(ctx, b.open())
	if err == nil && len(tags) > 0 {
		return fmt.Errorf("got %d tags", len(tags))
	}
	return err
}

func listAll(ctx context.Context, b *fixture) error {
	var tags []segment.Tag
	for i := range int64(60) {
		tags = append(tags, segment.Tag{Name: fmt.Sprintf("tag-%d", i), MaxID: i, Step: i + 1, Options: segment.Describe(strings.Repeat("描", int(i)))})
	}
	s, err := b.openWith(ctx, tags...)
	if err != nil {
		return err
	}
	if _, err := s.Advance(ctx, "tag-7", 0); err != nil {
		return err
	}
	tags[7].MaxID += tags[7].Step
	return first(b.lists(ctx, s, tags...), b.lists(ctx, b.open(), tags...))
}

// lists checks that the state has exactly the tags want.
func (b *fixture) lists(ctx context.Context, s segment.Store, want ...segment.Tag) error {
	got, err := list(ctx, s)
	if err != nil {
		return err
	}
	for _, tag := range want {
		if t, ok := got[tag.Name]; !ok {
			return fmt.Errorf("tag %q is not listed", tag.Name)
		} else if err := b.same(t, tag); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("got %d tags, want %d", len(got), len(want))
	}
	return nil
}

// same checks that got is want, as far as the store can tell.
func (b *fixture) same(got, want segment.Tag) error {
	got.Updated, want.Updated = time.Time{}, time.Time{}
	if b.Caps.Units {
		got.MaxID = want.MaxID
	}
	if b.Caps.NoDescriptions {
		got.Options, want.Options = got.Options.Others(), want.Options.Others()
	}
	if !got.Same(want) {
		return fmt.Errorf("got tag %+v, want %+v", got, want)
	}
	return nil
}

func listBreak(ctx context.Context, b *fixture, s segment.Store) error {
	for range 100 {
		for _, err := range s.Tags(ctx) {
			if err != nil {
				return err
			}
			break
		}
	}
	return b.advance(ctx, s, "order", 0, leaf.Range{Start: 1, End: 2001})
}

// oddTags are legal names with a history of misreadings; they differ even under a collation that
// folds case, accents and trailing space.
var oddTags = []string{
	"订单", "🍃leaf", "it's", `say "hi"`, "100%", "a%2Fb", `back\slash`, "a/b/../c", "..", " padded ", "under_score", "under-score",
	"--", ";", "`tick`", "$1", "?", "{hash}", "a:b:c", "null", "0", "x\u00a0y", "#", "&amp;", strings.Repeat("界", segment.MaxTagLength),
}

func oddNames(ctx context.Context, b *fixture) error {
	s := b.open()
	var tags []segment.Tag
	for i, name := range oddTags {
		tag := segment.Tag{Name: name, MaxID: int64(i * 1000), Step: int64(i + 1)}
		if b.Caps.BMPOnly && strings.ContainsFunc(name, func(r rune) bool { return utf8.RuneLen(r) > 3 }) {
			if err := b.refuses(ctx, s, tag); err != nil {
				return err
			}
			continue
		}
		if err := b.create(ctx, s, tag); err != nil {
			return err
		}
		tags = append(tags, tag)
	}
	for i, tag := range tags {
		if err := b.advance(ctx, s, tag.Name, 0, leaf.Range{Start: tag.MaxID, End: tag.MaxID + tag.Step}); err != nil {
			return err
		}
		tags[i].MaxID += tag.Step
	}
	return b.lists(ctx, b.open(), tags...)
}

// refuses checks that tag cannot be created, where the store is a Catalog.
func (b *fixture) refuses(ctx context.Context, s segment.Store, tag segment.Tag) error {
	c, ok := s.(segment.Catalog)
	if !ok {
		return nil
	}
	return is(fmt.Sprintf("create tag %.20q with step %d, max_id %d", tag.Name, tag.Step, tag.MaxID), c.Create(ctx, tag), leaf.ErrInvalid)
}

func listUpdated(ctx context.Context, b *fixture, s segment.Store) error {
	const tolerance = 5 * time.Minute
	if _, err := s.Advance(ctx, "order", 0); err != nil {
		return err
	}
	tags, err := list(ctx, s)
	if err != nil {
		return err
	}
	updated := tags["order"].Updated
	if off := time.Since(updated).Abs(); !updated.IsZero() && off > tolerance {
		return errors.New("changed just now, but Updated is off by " + off.String())
	}
	return nil
}
