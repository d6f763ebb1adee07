package issuer

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// The schemes whose IDs are made of time, worker ID and sequence. A key that is the name
// of a layout of the scheme means that layout; every other key is a label of the default
// one.
const (
	Snowflake = "snowflake"
	UID       = "uid" // the layouts and the modes of Baidu's uid-generator
)

// TimesOptions configures [Times]. The fields mean those of [snowflake.Options]; that of
// a layout's own random start wins.
type TimesOptions = snowflake.Options

// Times is the [Source] of a time-based scheme: one generator for each layout. Layouts
// of equal values are one layout under several names, and have one generator, since two
// would issue the same IDs.
type Times struct {
	scheme     string
	layouts    Layouts
	generators map[string]*snowflake.Generator // by name; never written after NewTimes
	standard   *snowflake.Generator
	distinct   []*snowflake.Generator
	why        func() error
}

// Explain has callers told what why returns where there are no IDs for want of a worker
// ID that may be used: a generator knows only from when on. It comes before the first
// call.
func (t *Times) Explain(why func() error) { t.why = why }

// explain adds to an error of a generator what is known of the worker ID.
func (t *Times) explain(err error) error {
	if t.why == nil || !errors.Is(err, leaf.ErrClock) {
		return err
	}
	if why := t.why(); errors.Is(why, worker.ErrWaiting) {
		return fmt.Errorf("%w: %w", leaf.ErrNoLease, why)
	}
	return err
}

// NewTimes returns the source of a scheme with the given layouts, whose names differ and of which
// the first is the default one. The error wraps [leaf.ErrInvalid] if a layout or an
// option is not valid.
func NewTimes(scheme string, layouts Layouts, opts *TimesOptions) (*Times, error) {
	if len(layouts) == 0 {
		return nil, fmt.Errorf("serve %s: no layout", scheme)
	}
	o := TimesOptions{}
	if opts != nil {
		o = *opts
	}
	if o.Clock == nil {
		o.Clock = worker.NewClock()
	}
	t := &Times{scheme: scheme, layouts: layouts, generators: make(map[string]*snowflake.Generator, len(layouts))}
	shared := make(map[worker.ServedLayout]*snowflake.Generator, len(layouts))
	for _, l := range layouts {
		values := l.Record("")
		g := shared[values]
		if g == nil {
			var err error
			o.RandomStart = l.RandomStart
			if g, err = snowflake.New(l.Layout, &o); err != nil {
				return nil, fmt.Errorf("layout %s: %w", l.Name, err)
			}
			shared[values] = g
			t.distinct = append(t.distinct, g)
		}
		t.generators[l.Name] = g
	}
	t.standard = t.generators[layouts[0].Name]
	return t, nil
}

// generator returns what makes the IDs of a key. The name of a built-in layout that is
// not served is no label: whoever asks for numbers that JavaScript can hold must not get
// others.
func (t *Times) generator(key string) (*snowflake.Generator, error) {
	if g, ok := t.generators[key]; ok {
		return g, nil
	}
	if _, builtIn := snowflake.Preset(key); builtIn && t.scheme == Snowflake {
		return nil, fmt.Errorf("%w: this server does not serve the layout %s under %s: add it to snowflake.layouts", leaf.ErrInvalid, key, t.scheme)
	}
	return t.standard, nil
}

// Next returns one ID; see [snowflake.Generator.Next].
func (t *Times) Next(ctx context.Context, key string) (int64, error) {
	g, err := t.generator(key)
	if err != nil {
		return 0, err
	}
	id, err := g.Next(ctx)
	if err != nil {
		return 0, t.explain(err)
	}
	return id, nil
}

// Take appends n IDs to dst; see [snowflake.Generator.Take].
func (t *Times) Take(ctx context.Context, key string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	g, err := t.generator(key)
	if err != nil {
		return dst, err
	}
	dst, err = g.Take(ctx, dst, n)
	if err != nil {
		return dst, t.explain(err)
	}
	return dst, nil
}

// Layouts returns the layouts as they stand in worker records.
func (t *Times) Layouts() []worker.ServedLayout {
	list := make([]worker.ServedLayout, len(t.layouts))
	for i, l := range t.layouts {
		list[i] = l.Record(l.Name)
	}
	return list
}

// Generators returns what is to issue under the lease of a worker ID.
func (t *Times) Generators() []worker.LeaseUser {
	list := make([]worker.LeaseUser, len(t.distinct))
	for i, g := range t.distinct {
		list[i] = g
	}
	return list
}
