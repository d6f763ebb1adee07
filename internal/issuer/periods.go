package issuer

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// Periods lists a tag's periods with a counter. It wraps [leaf.ErrUnknownTag] or
// [leaf.ErrUnsupported].
func (t *Tags) Periods(ctx context.Context, name string) ([]segment.Period, error) {
	catalog, err := t.periods(name)
	if err != nil {
		return nil, fmt.Errorf("list the periods of %q: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := catalog.Periods(ctx, name)
	return all, failed(err)
}

// highestPeriod returns the highest counter of a tag's periods, 0 without one.
func (t *Tags) highestPeriod(ctx context.Context, name string) (highest int64, err error) {
	catalog, ok := t.store.(segment.PeriodCatalog)
	if !ok {
		return 0, nil
	}
	all, err := catalog.Periods(ctx, name)
	for _, p := range all {
		highest = max(highest, p.MaxID)
	}
	return highest, t.failed(err)
}

// RemovePeriod removes a past period, for good. It wraps [leaf.ErrInvalid] for any other.
func (t *Tags) RemovePeriod(ctx context.Context, name, period string) error {
	catalog, err := t.periods(name)
	if err != nil {
		return fmt.Errorf("remove a period of %q: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := catalog.RemovePeriod(ctx, name, period); err != nil {
		return t.failed(err)
	}
	audit(ctx, t.log, "period removed", nil, nil, "tag", name, "period", period)
	return nil
}

func (t *Tags) periods(name string) (segment.PeriodCatalog, error) {
	if err := segment.CheckTagName(name); err != nil {
		return nil, err
	}
	catalog, ok := t.store.(segment.PeriodCatalog)
	if !ok {
		return nil, leaf.ErrUnsupported
	}
	return catalog, nil
}

// Stockless reports whether the IDs of a tag come from [Issuer.TakeIn], which also says their period.
func (i *Issuer) Stockless(ctx context.Context, scheme, key string) (bool, error) {
	if SchemeOf(scheme).Name != Segment {
		return false, nil
	}
	if l, err := i.lender(key); err == nil {
		return l.Stockless(ctx, key)
	}
	return false, nil // the call itself tells why
}

// TakeIn returns n IDs, 1 … [Issuer.MaxRange], of a tag without a stock, with the period that they
// belong to. An empty period means the present one. Contiguous IDs follow one another, which those of
// a tag with a mask do not.
func (i *Issuer) TakeIn(ctx context.Context, scheme, key, period string, n int, contiguous bool) (IDs, error) {
	stockless, err := i.Stockless(ctx, scheme, key)
	if err == nil && !stockless {
		err = fmt.Errorf("%w: %q has no periods", leaf.ErrInvalid, key)
	}
	if err != nil {
		return IDs{}, err
	}
	grant, err := i.AdvanceStrict(ctx, key, &period, !contiguous || n == 1, int64(n))
	if contiguous && errors.Is(err, segment.ErrMasked) {
		err = fmt.Errorf("%w: the numbers of %q are hidden", leaf.ErrNotContiguous, key)
	}
	if err == nil && grant.Len() < int64(n) {
		err = fmt.Errorf("tag %q: %w: the mask has only %d numbers left", key, leaf.ErrOverflow, grant.Len())
	}
	if err != nil {
		return IDs{}, err
	}
	return IDs{Ranges: grant.AppendTo(nil), Period: grant.Period}, nil
}
