package issuer

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/textid"
)

// A former knows the forms of tags. A [segment.Set] is one.
type former interface {
	Form(ctx context.Context, tag string) (*textid.Form, error)
}

// Form returns the form of a tag. For a key without a form it wraps [leaf.ErrInvalid].
func (i *Issuer) Form(ctx context.Context, scheme, key string) (*textid.Form, error) {
	source, err := i.source(scheme, key)
	if err != nil {
		return nil, err
	}
	if of, ok := source.(numbers); ok {
		if f, ok := of.KeyedGenerator.(former); ok {
			return f.Form(ctx, key)
		}
	}
	return nil, fmt.Errorf("%w: the IDs of %s have no form", leaf.ErrInvalid, SchemeOf(scheme).Name)
}

// Write returns ids with their texts in place of the numbers, to be read once. It fails for all of
// them where one does not fit.
func Write(form *textid.Form, ids IDs) (IDs, error) {
	n, least, most := 0, int64(math.MaxInt64), int64(0)
	for _, r := range ids.Ranges {
		n += int(r.Len())
		least, most = min(least, r.Start), max(most, r.End-1)
	}
	var number textid.Number
	if form.HasPeriod() {
		number.Period, _ = time.Parse(time.DateOnly, ids.Period) // else Encode fails
	}
	for _, number.N = range []int64{least, most} { // those between them fit as well
		if _, err := form.Encode(number); err != nil {
			return IDs{}, err
		}
	}
	rest := IDs{Ranges: append([]leaf.Range(nil), ids.Ranges...)}
	return IDs{Period: ids.Period, Texts: Texts{n, func() string {
		id, _ := rest.Shift()
		number := number
		number.N = id.Number
		text, _ := form.Encode(number)
		return text
	}}}, nil
}
