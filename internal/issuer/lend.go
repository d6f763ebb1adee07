package issuer

import (
	"context"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A lender lends ranges to processes with a stock of their own.
type lender interface {
	Advance(ctx context.Context, tag string, n int64, before string) (segment.Grant, error)
	AdvanceStrict(ctx context.Context, tag string, period *string, masked bool, n int64) (segment.Grant, error)
	Stockless(ctx context.Context, tag string) (bool, error)
	Return(ctx context.Context, tag string, last segment.Grant, start int64) error
}

// Advance takes a range of up to n IDs of a tag off the stock, and never more than
// [Issuer.MaxRange]; as a segment.Set lends it. Its errors are those of [Issuer.Next].
func (i *Issuer) Advance(ctx context.Context, tag string, n int64, before string) (segment.Grant, error) {
	l, err := i.lender(tag)
	if err != nil {
		return segment.Grant{}, err
	}
	return l.Advance(ctx, tag, min(n, int64(i.maxRange)), before)
}

// combined is how many IDs of several waiting callers a relay takes in one call.
const combined = 10_000

// MaxStrict returns the most IDs of a call to [Issuer.AdvanceStrict]. A relay, whose callers have
// bounds of its own, does not know those of this server.
func (i *Issuer) MaxStrict() int64 { return max(int64(i.maxRange), combined) }

// AdvanceStrict takes n IDs, 1 … [Issuer.MaxStrict], of a tag with strict order, periods or a mask. A
// nil period tells that the caller knows nothing of periods, and masked whether it knows masks.
func (i *Issuer) AdvanceStrict(ctx context.Context, tag string, period *string, masked bool, n int64) (segment.Grant, error) {
	l, err := i.lender(tag)
	if err == nil {
		err = checkCount(n, i.MaxStrict())
	}
	if err != nil {
		return segment.Grant{}, err
	}
	return l.AdvanceStrict(ctx, tag, period, masked, n)
}

// Return puts the unused end of such a range back into the stock.
func (i *Issuer) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	l, err := i.lender(tag)
	if err != nil {
		return err
	}
	return l.Return(ctx, tag, last, start)
}

func (i *Issuer) lender(tag string) (lender, error) {
	source, err := i.source(Segment, tag)
	if err != nil {
		return nil, err
	}
	if of, ok := source.(numbers); ok {
		if set, ok := of.KeyedGenerator.(*segment.Set); ok {
			return set.Server(), nil
		}
	}
	return nil, fmt.Errorf("%w: %s lends no ranges", leaf.ErrUnsupported, Segment)
}
