package kv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var _ segment.PeriodCatalog = (*Store)(nil)

// The counter of a period has a cell of its own, with the options of its tag, so that older releases
// refuse it. Removing the period, or the tag, leaves the cell: no number comes back.

func periodKey(tag, period string) Key { return Key{Periods, period + " " + tag} }

// advanceIn makes a call for the counter of a tag, or of its period.
func (s *Store) advanceIn(ctx context.Context, tag, period string, c *call) (segment.Grant, error) {
	parent, err := s.find(ctx, tag)
	if err != nil {
		return segment.Grant{}, err
	}
	if !parent.Options.Periodic() && period == "" {
		return s.advance(ctx, tagKey(tag), c)
	}
	if period, err = parent.Options.PeriodOf(period, time.Now()); err != nil {
		return segment.Grant{}, err
	}
	c.parent = &parent
	grant, err := s.advance(ctx, periodKey(tag, period), c)
	grant.Period, grant.Source = period, period
	return grant, err
}

// find reads the cell of a tag.
func (s *Store) find(ctx context.Context, tag string) (tagText, error) {
	cell, err := s.db.backend.Get(ctx, tagKey(tag))
	if err != nil {
		return tagText{}, err
	}
	t, err := readTag(cell)
	if cell.Version == "" {
		if failed := s.marker.recheck(ctx); failed != nil {
			err = failed
		}
	}
	return t, err
}

// periodText returns the counter of a period as a call finds it: t, or why there is none.
func periodText(key Key, t tagText, err error, parent *tagText) (tagText, error) {
	switch {
	case err == nil:
	case errors.Is(err, leaf.ErrUnknownTag) && t.MaxID == 0:
		t = tagText{} // the first call of the period
	case errors.Is(err, leaf.ErrUnknownTag):
		period, _, _ := strings.Cut(key.Name, " ")
		return t, segment.ErrPeriodRemoved(period)
	default:
		return t, err
	}
	t.MaxID, t.Step, t.Options = max(t.MaxID, parent.MaxID), parent.Step, parent.Options.Others()
	return t, nil
}

// Periods lists the periods of a tag.
func (s *Store) Periods(ctx context.Context, tag string) (all []segment.Period, err error) {
	err = s.do(ctx, func() error {
		if parent, err := s.find(ctx, tag); err != nil || !parent.Options.Periodic() {
			return err
		}
		for cell, err := range s.db.backend.List(ctx, Periods) {
			if err != nil {
				return err
			}
			period, of, _ := strings.Cut(cell.Key.Name, " ")
			if of != tag {
				continue
			}
			t, err := readTag(cell)
			switch {
			case errors.Is(err, leaf.ErrUnknownTag): // removed
			case err != nil:
				return err
			default:
				all = append(all, segment.Period{Name: period, MaxID: t.MaxID})
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b segment.Period) int { return strings.Compare(a.Name, b.Name) })
	return all, wrap(err, "list the periods of %q", tag)
}

// RemovePeriod removes a period. Its cell stays with the counter.
func (s *Store) RemovePeriod(ctx context.Context, tag, period string) error {
	err := s.do(ctx, func() error {
		parent, err := s.find(ctx, tag)
		if err == nil {
			err = parent.Options.CheckRemoval(period, time.Now())
		}
		if err != nil {
			return err
		}
		return s.editCell(ctx, periodKey(tag, period), func(t *tagText, err error) error {
			if errors.Is(err, leaf.ErrUnknownTag) {
				return segment.ErrNoPeriod(period)
			}
			*t = tagText{Deleted: true, MaxID: t.MaxID}
			return err
		})
	})
	return wrap(err, "remove the period %s of %q", period, tag)
}
