package issuer

import (
	"context"

	"github.com/leaf-id/leaf"
)

// A Request is a caller's wish to [Issuer.Issue].
type Request struct {
	Scheme, Key string
	N           int
	Period      string // empty: the present one
	Stockless   bool   // the tag has no stock, see [Issuer.Stockless]
	Contiguous  bool   // the IDs follow one another
	Ranges      bool   // as few ranges as possible, of up to [Issuer.MaxRange] IDs
	Form        bool   // as texts in the form of the tag
}

// Issue returns the IDs of a request. A request for texts of a tag without a form uses up no ID.
func (i *Issuer) Issue(ctx context.Context, r Request) (IDs, error) {
	if !r.Form {
		return i.take(ctx, r)
	}
	form, err := i.Form(ctx, r.Scheme, r.Key)
	if err != nil {
		return IDs{}, err
	}
	ids, err := i.take(ctx, r)
	if err != nil {
		return IDs{}, err
	}
	return Write(form, ids)
}

func (i *Issuer) take(ctx context.Context, r Request) (ids IDs, err error) {
	switch {
	case r.Stockless || r.Period != "":
		return i.TakeIn(ctx, r.Scheme, r.Key, r.Period, r.N, r.Contiguous)
	case r.Contiguous:
		one, err := i.TakeContiguous(ctx, r.Scheme, r.Key, r.N)
		return IDs{Ranges: []leaf.Range{one}}, err
	case r.Ranges:
		ids.Ranges, err = i.AppendRanges(ctx, r.Scheme, r.Key, nil, r.N)
		return ids, err
	}
	return i.Take(ctx, r.Scheme, r.Key, r.N)
}
