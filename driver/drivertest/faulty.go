package drivertest

import (
	"context"
	"iter"
	"slices"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// An Op is a kind of call that a [Faulty] counts and fails.
type Op string

// The kinds of calls.
const (
	OpAdvance Op = "advance"
	OpReturn  Op = "return"
	OpTags    Op = "tags"
	OpCatalog Op = "catalog" // Create, Alter and Delete
)

// A Call describes one call to a [Faulty].
type Call struct {
	Op  Op
	Tag string // empty for OpTags
	N   int64  // of Advance
	Seq int    // 1 for the first call of this Op
}

// Only is the plan with the fault in the calls of one kind.
func Only(op Op, fault Fault) func(Call) Fault {
	return func(c Call) Fault {
		if c.Op != op {
			return Fault{}
		}
		return fault
	}
}

// Faulty is a [segment.Store] that forwards to another one, fails by plan, and records the handed
// out ranges. Without a plan it only forwards. It is a [segment.Returner] and a [segment.Catalog];
// if Store is not, those calls return [leaf.ErrUnsupported]. It uses only the clock and channels,
// so it works in a synctest bubble. Its methods are safe for concurrent use.
type Faulty struct {
	Store segment.Store // the store behind; set before first use

	plans[Call]
	granted  map[string][]leaf.Range
	returned map[string][]leaf.Range
}

// Granted returns the ranges of tag that the store behind has handed out, in the
// order of its answers, also those whose answer was kept from the caller.
func (f *Faulty) Granted(tag string) []leaf.Range {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.granted[tag])
}

// Returned returns the ranges of tag that the store behind has taken back.
func (f *Faulty) Returned(tag string) []leaf.Range {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.returned[tag])
}

// Advance forwards to the store behind.
func (f *Faulty) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return f.advance(ctx, tag, n, f.Store.Advance)
}

// AdvanceStrict forwards to the store behind.
func (f *Faulty) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	s, ok := f.Store.(segment.StrictStore)
	if !ok {
		return segment.Grant{}, leaf.ErrUnsupported
	}
	return f.advance(ctx, tag, n, func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		return s.AdvanceStrict(ctx, tag, period, n)
	})
}

// AdvanceMasked forwards to the store behind.
func (f *Faulty) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	s, ok := f.Store.(segment.MaskedStore)
	if !ok {
		return segment.Grant{}, leaf.ErrUnsupported
	}
	return f.advance(ctx, tag, n, s.AdvanceMasked)
}

func (f *Faulty) advance(ctx context.Context, tag string, n int64, advance func(context.Context, string, int64) (segment.Grant, error)) (grant segment.Grant, err error) {
	err = f.do(ctx, Call{Op: OpAdvance, Tag: tag, N: n}, func() (err error) {
		if grant, err = advance(ctx, tag, n); err == nil {
			f.record(&f.granted, tag, grant.Range)
		}
		return err
	})
	if err != nil {
		return segment.Grant{}, err
	}
	return grant, nil
}

// Periods forwards to the store behind.
func (f *Faulty) Periods(ctx context.Context, tag string) ([]segment.Period, error) {
	if c, ok := f.Store.(segment.PeriodCatalog); ok {
		return c.Periods(ctx, tag)
	}
	return nil, leaf.ErrUnsupported
}

// RemovePeriod forwards to the store behind.
func (f *Faulty) RemovePeriod(ctx context.Context, tag, period string) error {
	if c, ok := f.Store.(segment.PeriodCatalog); ok {
		return c.RemovePeriod(ctx, tag, period)
	}
	return leaf.ErrUnsupported
}

// Return forwards to the store behind.
func (f *Faulty) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return f.do(ctx, Call{Op: OpReturn, Tag: tag}, func() error {
		r, ok := f.Store.(segment.Returner)
		if !ok {
			return leaf.ErrUnsupported
		}
		err := r.Return(ctx, tag, last, start)
		if err == nil {
			f.record(&f.returned, tag, leaf.Range{Start: start, End: last.Range.End})
		}
		return err
	})
}

// Tags forwards to the store behind. A [Fault] with After set yields that error
// behind the last tag.
func (f *Faulty) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		stopped := false
		err := f.do(ctx, Call{Op: OpTags}, func() error {
			for tag, err := range f.Store.Tags(ctx) {
				if err != nil {
					return err
				}
				if stopped = !yield(tag, nil); stopped {
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(segment.Tag{}, err)
		}
	}
}

// Create forwards to the store behind.
func (f *Faulty) Create(ctx context.Context, tag segment.Tag) error {
	return f.catalog(ctx, tag.Name, func(c segment.Catalog) error { return c.Create(ctx, tag) })
}

// Alter forwards to the store behind.
func (f *Faulty) Alter(ctx context.Context, name string, change segment.Change) (tag segment.Tag, err error) {
	err = f.catalog(ctx, name, func(c segment.Catalog) (err error) {
		tag, err = c.Alter(ctx, name, change)
		return err
	})
	return tag, err
}

// Delete forwards to the store behind.
func (f *Faulty) Delete(ctx context.Context, name string) error {
	return f.catalog(ctx, name, func(c segment.Catalog) error { return c.Delete(ctx, name) })
}

func (f *Faulty) catalog(ctx context.Context, tag string, call func(segment.Catalog) error) error {
	return f.do(ctx, Call{Op: OpCatalog, Tag: tag}, func() error {
		c, ok := f.Store.(segment.Catalog)
		if !ok {
			return leaf.ErrUnsupported
		}
		return call(c)
	})
}

// do counts the call and makes it, with its fault.
func (f *Faulty) do(ctx context.Context, c Call, call func() error) error {
	return f.begin(c.Op, func(seq int) Call { c.Seq = seq; return c }).inject(ctx, call)
}

func (f *Faulty) record(to *map[string][]leaf.Range, tag string, r leaf.Range) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *to == nil {
		*to = make(map[string][]leaf.Range)
	}
	(*to)[tag] = append((*to)[tag], r)
}
