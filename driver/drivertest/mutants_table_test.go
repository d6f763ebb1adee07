package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
)

var mutants = []mutant{
	{"reads, then writes", onAdvance(readThenWrite), []string{"sharing/64 goroutines", "sharing/several clients", "catalog/raise while advancing"}},
	{"writes behind", onAdvance(writeBehind), []string{"faults/error after commit", "faults/reopen", "sharing/several clients"}},
	{"hoards blocks", onAdvance(hoard), []string{"faults/reopen", "catalog/raise while advancing"}},
	{"undoes what was cut short", onAdvance(undo), []string{"faults/cancelled during"}},
	{"blames the tag when cut short", tweak(nil, func(_ *segment.Grant, err *error) {
		if errors.Is(*err, context.DeadlineExceeded) {
			*err = leaf.ErrUnknownTag
		}
	}), []string{"faults/cancelled during"}},
	{"blames the tag when cancelled", tweak(nil, func(_ *segment.Grant, err *error) {
		if errors.Is(*err, context.Canceled) {
			*err = leaf.ErrUnknownTag
		}
	}), []string{"faults/cancelled during"}},
	{"ignores the context", tweak(func(ctx *context.Context, _ *string, _ *int64) { *ctx = context.WithoutCancel(*ctx) }, nil),
		[]string{"faults/cancelled before"}},
	{"wastes a range at first", onAdvance(wasteful), []string{"faults/error before commit", "advance/first range"}},
	{"fails the call behind a bad one", onAdvance(hangover), []string{"sharing/unknown tag among good ones"}},
	{"deals downwards", onAdvance(downwards), []string{"sharing/only upwards"}},

	{"ignores the step", tweak(func(_ *context.Context, _ *string, n *int64) { *n = max(*n, 1) }, nil), []string{"advance/first range"}},
	{"begins at 1", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			if t, ok := find(s, tag); ok && t.MaxID == 0 {
				_ = set(s, tag, 1)
			}
			return s.Advance(ctx, tag, n)
		}
	}), []string{"advance/from zero"}},
	{"has n in 32 bits", tweak(func(_ *context.Context, _ *string, n *int64) { *n = int64(int32(*n)) }, nil), []string{"advance/explicit n", "advance/huge n"}},
	{"reports n as the step", tweak(nil, func(g *segment.Grant, _ *error) { g.Step = g.Range.Len() }), []string{"advance/step is reported"}},
	{"remembers the step", onAdvance(staleStep), []string{"advance/step is reported"}},
	{"has one counter", tweak(func(_ *context.Context, tag *string, _ *int64) { *tag = "order" }, nil), []string{"advance/tags are independent", "advance/unknown tag"}},
	{"creates what is missing", onAdvance(createMissing), []string{"advance/unknown tag", "advance/names byte for byte", "catalog/delete"}},
	{"lets bad names fail the store", tweak(nil, func(_ *segment.Grant, err *error) {
		if errors.Is(*err, leaf.ErrUnknownTag) {
			*err = errors.New("incorrect string value")
		}
	}), []string{"advance/impossible names", "advance/unknown tag"}},
	{"takes a negative n", tweak(func(_ *context.Context, _ *string, n *int64) { *n = max(*n, 0) }, nil), []string{"advance/negative n"}},
	{"clamps at the end", onAdvance(clamp), []string{"advance/overflow", "advance/huge n"}},
	{"begins anew at the end", onAdvance(wrapAround), []string{"advance/overflow", "advance/huge n"}},

	{"folds case", folding(strings.ToLower), []string{"advance/names byte for byte", "catalog/unknown", "return/wrong"}},
	{"folds accents", folding(fold), []string{"advance/names byte for byte", "catalog/unknown"}},
	{"pads with spaces", folding(func(s string) string { return strings.TrimRight(s, " ") }), []string{"advance/names byte for byte", "catalog/unknown", "return/wrong"}},
	{"folds new names", onCreate(func(s *kv.Store) createFunc {
		return func(ctx context.Context, tag segment.Tag) error {
			tag.Name = fold(tag.Name)
			return s.Create(ctx, tag)
		}
	}), []string{"catalog/create lookalike"}},
	{"trims new names", onCreate(func(s *kv.Store) createFunc {
		return func(ctx context.Context, tag segment.Tag) error {
			tag.Name = strings.TrimSpace(tag.Name)
			return s.Create(ctx, tag)
		}
	}), []string{"tags/odd names"}},

	{"lists what is not there", onTags(func(s *kv.Store) tagsFunc {
		_ = s.Create(context.Background(), segment.Tag{Name: "sample", Step: 1})
		return s.Tags
	}),
		[]string{"tags/none", "tags/all"}},
	{"lists twice", eachTag(func(t segment.Tag) []segment.Tag { return []segment.Tag{t, t} }), []string{"tags/all"}},
	{"lists some", eachTag(func(t segment.Tag) []segment.Tag {
		if t.Name == "tag-59" {
			return nil
		}
		return []segment.Tag{t}
	}), []string{"tags/all"}},
	{"keeps what a broken-off listing held", leakyTags, []string{"tags/break"}},
	{"lists times of another zone", eachTag(wrongZone), []string{"tags/updated"}},

	{"draws an identity for each grant", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			g, err := s.Advance(ctx, tag, n)
			g.Store = rand.Text()
			return g, err
		}
	}), []string{"identity/one", "identity/after a change"}},
	{"has the identity of all stores", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			g, err := s.Advance(ctx, tag, n)
			g.Store = "store"
			return g, err
		}
	}), []string{"identity/of a fresh store"}},

	{"returns unconditionally", onReturn(func(s *kv.Store) returnFunc {
		return func(_ context.Context, tag string, _ segment.Grant, start int64) error {
			time.Sleep(roundTrip)
			return set(s, tag, start)
		}
	}), []string{"return/moved on", "return/wrong", "return/racing"}},
	{"returns in two steps", onReturn(func(s *kv.Store) returnFunc {
		return func(_ context.Context, tag string, last segment.Grant, start int64) error {
			t, ok := find(s, tag)
			time.Sleep(roundTrip)
			if !ok || t.MaxID != last.Range.End {
				return errors.New("moved on")
			}
			return set(s, tag, start)
		}
	}), []string{"return/racing"}},
	{"returns by the counter's value", onReturn(func(s *kv.Store) returnFunc {
		return func(ctx context.Context, tag string, last segment.Grant, start int64) error {
			now, err := s.Advance(ctx, tag, 1)
			if err != nil {
				return err
			}
			if now.Range.Start != last.Range.End {
				return errors.Join(errors.New("moved on"), s.Return(ctx, tag, now, now.Range.Start))
			}
			return s.Return(ctx, tag, now, start)
		}
	}), []string{"return/behind another", "return/lowered and granted again", "return/created anew and granted again", "return/of no known write"}},
	{"counts the writes of a tag from its creation", countWrites, []string{"return/created anew and granted again"}},
	{"returns nothing", onReturn(func(*kv.Store) returnFunc {
		return func(context.Context, string, segment.Grant, int64) error { return nil }
	}),
		[]string{"return/tail", "return/moved on"}},
	{"returns within one grant only", onReturn(func(s *kv.Store) returnFunc {
		return func(ctx context.Context, tag string, last segment.Grant, start int64) error {
			return s.Return(ctx, tag, last, max(start, last.Range.Start))
		}
	}), []string{"return/run"}},
	{"repeats a return", repeatReturn, []string{"return/lost reply then equal step"}},

	{"replaces what exists", onCreate(func(s *kv.Store) createFunc {
		return func(ctx context.Context, tag segment.Tag) error {
			_ = s.Delete(ctx, tag.Name)
			return s.Create(ctx, tag)
		}
	}), []string{"catalog/create twice", "catalog/create at once"}},
	{"creates what is invalid", onCreate(func(s *kv.Store) createFunc {
		return func(ctx context.Context, tag segment.Tag) error {
			tag.Step = min(max(tag.Step, 1), segment.MaxStep)
			return s.Create(ctx, tag)
		}
	}), []string{"catalog/create invalid"}},
	{"alters one field only", onAlter(func(s *kv.Store) alterFunc {
		return func(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
			if c.MaxID != nil {
				c.Step = nil
			}
			return s.Alter(ctx, name, c)
		}
	}), []string{"catalog/alter"}},
	{"drops the options of newer releases", onAlter(func(s *kv.Store) alterFunc {
		return func(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
			c.Options = maps.Clone(c.Options)
			maps.DeleteFunc(c.Options, func(name, _ string) bool { return name != "description" })
			return s.Alter(ctx, name, c)
		}
	}), []string{"catalog/options"}},
	{"has a stock of a strict tag", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			g, err := s.Advance(ctx, tag, n)
			if errors.Is(err, segment.ErrStrict) {
				return s.AdvanceStrict(ctx, tag, "", max(n, 10))
			}
			return g, err
		}
	}), []string{"catalog/strict order"}},
	{"names no server in a strict grant", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			g, err := s.Advance(ctx, tag, n)
			g.Server = "one"
			return g, err
		}
	}), []string{"catalog/strict order"}},
	{"has a stock of a tag with periods", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			g, err := s.Advance(ctx, tag, n)
			if errors.Is(err, segment.ErrPeriodic) {
				return s.AdvanceStrict(ctx, tag, "", max(n, 10))
			}
			return g, err
		}
	}), []string{"catalog/periods"}},
	{"shows the numbers of a tag with a mask", onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			g, err := s.Advance(ctx, tag, n)
			if errors.Is(err, segment.ErrMasked) {
				return s.AdvanceMasked(ctx, tag, max(n, 10))
			}
			return g, err
		}
	}), []string{"catalog/masks"}},
	{"misses the row that stays the same", onAlter(func(s *kv.Store) alterFunc {
		return func(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
			was, _ := find(s, name)
			is, err := s.Alter(ctx, name, c)
			if was.Updated = is.Updated; err == nil && was.Same(is) {
				err = leaf.ErrUnknownTag
			}
			return is, err
		}
	}), []string{"catalog/alter to the same"}},
	{"alters bit by bit", onAlter(func(s *kv.Store) alterFunc {
		return func(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
			if _, err := s.Alter(ctx, name, segment.Change{Step: c.Step}); err != nil {
				return segment.Tag{}, err
			}
			return s.Alter(ctx, name, c)
		}
	}), []string{"catalog/alter invalid", "catalog/lower"}},
	{"forces every change", onAlter(func(s *kv.Store) alterFunc {
		return func(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
			c.Force = true
			return s.Alter(ctx, name, c)
		}
	}), []string{"catalog/lower"}},
	{"starts a new tag below a deleted one", onCreate(func(s *kv.Store) createFunc {
		return func(ctx context.Context, tag segment.Tag) error {
			err := s.Create(ctx, tag)
			if err == nil {
				err = set(s, tag.Name, tag.MaxID)
			}
			return err
		}
	}), []string{"catalog/delete", "catalog/delete while advancing"}},
	{"does nothing on Close", func(s *kv.Store) segment.Store { return closable{s} }, []string{"faults/use after Close"}},
}
