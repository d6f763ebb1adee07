package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var periodicTag = segment.Tag{Name: "invoice", MaxID: 5, Step: 10, Options: segment.TagOptions{
	segment.OptionPeriod: "day", segment.OptionZone: "Europe/Berlin",
}}

// periods follows a tag with periods through its life.
func periods(ctx context.Context, b *fixture, c catalog) error {
	s, ok := c.(segment.StrictStore)
	if !ok {
		return is("create with a period", c.Create(ctx, periodicTag), leaf.ErrUnsupported)
	}
	p := c.(segment.PeriodCatalog)
	exact := func(period string, n, start int64) error {
		g, err := s.AdvanceStrict(ctx, "invoice", period, n)
		if want := (leaf.Range{Start: start, End: start + n}); err != nil || g.Range != want || g.Step != 10 || g.Period != period || g.Source != period && !g.Guarded {
			return fmt.Errorf("advance the period %s by %d: got %+v, %v, want %v", period, n, g, err, want)
		}
		return nil
	}
	refused := func(period string, want error) error {
		_, err := s.AdvanceStrict(ctx, "invoice", period, 1)
		return is("advance the period "+period, err, want)
	}
	listed := func(want ...segment.Period) error {
		got, err := b.open().(segment.PeriodCatalog).Periods(ctx, "invoice")
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("periods: got %v, %v, want %v", got, err, want)
		}
		return nil
	}
	if err := first(c.Create(ctx, periodicTag), b.lists(ctx, b.open(), periodicTag), listed(),
		is("list the periods of an unknown tag", errorOf(p.Periods(ctx, "nope")), leaf.ErrUnknownTag)); err != nil {
		return err
	}
	_, plain := b.open().Advance(ctx, "invoice", 1)
	if err := first(is("advance as a plain tag", plain, segment.ErrPeriodic),
		exact("2024-02-29", 2, 5), exact("2024-03-01", 1, 5), exact("2024-02-29", 1, 7),
		refused("2023-02-29", leaf.ErrInvalid), refused("2024-2-1", leaf.ErrInvalid), refused("2999-01-01", leaf.ErrInvalid),
		listed(segment.Period{Name: "2024-02-29", MaxID: 8}, segment.Period{Name: "2024-03-01", MaxID: 6}),
		b.lists(ctx, b.open(), periodicTag)); err != nil {
		return err
	}
	if err := presentPeriod(ctx, s, p); err != nil {
		return err
	}
	raised := int64(100) // it raises all periods
	_, err := c.Alter(ctx, "invoice", segment.Change{MaxID: &raised})
	_, fixed := c.Alter(ctx, "invoice", segment.Change{Options: segment.TagOptions{segment.OptionPeriod: "month"}})
	if err := first(err, is("change the period", fixed, leaf.ErrInvalid), exact("2024-02-29", 1, 100), exact("2024-03-02", 1, 100),
		is("remove a period without numbers", p.RemovePeriod(ctx, "invoice", "2024-01-01"), leaf.ErrInvalid),
		is("remove the present period", p.RemovePeriod(ctx, "invoice", day(time.Now())), leaf.ErrInvalid),
		p.RemovePeriod(ctx, "invoice", "2024-02-29"), refused("2024-02-29", leaf.ErrInvalid),
		is("remove it again", p.RemovePeriod(ctx, "invoice", "2024-02-29"), leaf.ErrInvalid),
		exact("2024-03-01", 1, 100)); err != nil {
		return err
	}
	// The counters of periods outlive their tag. A new one without periods does not list them.
	if err := first(c.Delete(ctx, "invoice"), refused("2024-03-01", leaf.ErrUnknownTag),
		c.Create(ctx, segment.Tag{Name: "invoice", MaxID: 5, Step: 10}), listed(), c.Delete(ctx, "invoice"), c.Create(ctx, periodicTag),
		exact("2024-03-01", 1, 101), refused("2024-02-29", leaf.ErrInvalid)); err != nil {
		return err
	}
	return periodTogether(ctx, b)
}

func day(t time.Time) string {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return err.Error()
	}
	return t.In(berlin).Format(time.DateOnly)
}

func errorOf[T any](_ T, err error) error { return err }

// presentPeriod advances without a name: the period is that of a moment of the call.
func presentPeriod(ctx context.Context, s segment.StrictStore, p segment.PeriodCatalog) error {
	before := day(time.Now())
	g, err := s.AdvanceStrict(ctx, "invoice", "", 3)
	after := day(time.Now())
	if err != nil || g.Range != (leaf.Range{Start: 5, End: 8}) || g.Period != before && g.Period != after {
		return fmt.Errorf("advance the period of today, %s … %s: got %+v, %v", before, after, g, err)
	}
	all, err := p.Periods(ctx, "invoice")
	if err != nil || all[len(all)-1] != (segment.Period{Name: g.Period, MaxID: 8}) {
		return fmt.Errorf("periods: got %v, %v, and the last is not %s", all, err, g.Period)
	}
	return nil
}

// periodTogether has callers of two clients begin a period at the same time.
func periodTogether(ctx context.Context, b *fixture) error {
	var mu sync.Mutex
	var ranges Ranges
	var errs []error
	var wg sync.WaitGroup
	for _, s := range []segment.Store{b.open(), b.open()} {
		for range 4 {
			wg.Go(func() {
				for i := range 5 {
					g, err := s.(segment.StrictStore).AdvanceStrict(ctx, "invoice", fmt.Sprintf("2025-01-%02d", i+1), 2)
					mu.Lock()
					errs = append(errs, err)
					ranges.Add(leaf.Range{Start: g.Range.Start + int64(i)*1000, End: g.Range.End + int64(i)*1000})
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	all, err := b.open().(segment.PeriodCatalog).Periods(ctx, "invoice")
	for _, period := range all {
		if period.Name >= "2025-01-01" && period.Name <= "2025-01-05" && period.MaxID != 100+16 {
			errs = append(errs, fmt.Errorf("the period %s ends at %d, without a gap it is at 116", period.Name, period.MaxID))
		}
	}
	return first(errors.Join(errs...), err, ranges.Check())
}
