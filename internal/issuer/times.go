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

// Times makes the IDs of a time-based scheme with one generator for each layout. Layouts
// of equal values are one layout under several names, and have one generator, since two
// would issue the same IDs.
type Times struct {
	scheme     string
	generators map[string]*snowflake.Generator // by the name of their layout; never written after NewTimes
	standard   *snowflake.Generator
	layouts    []worker.ServedLayout
	users      []worker.LeaseUser
	why        func() error
}

// Explain sets why, which says what keeps the worker ID from being used. A generator knows
// only from when it may be used, so callers are told both. Call it before the first use.
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

// NewTimes returns the generators of a scheme with the given layouts, whose names differ
// and of which the first is the default one. The random start of a layout overrules that
// of o. The error wraps [leaf.ErrInvalid] if a layout or an option is not valid.
func NewTimes(scheme string, layouts Layouts, o snowflake.Options) (*Times, error) {
	if len(layouts) == 0 {
		return nil, fmt.Errorf("serve %s: no layout", scheme)
	}
	if o.Clock == nil {
		o.Clock = worker.NewClock()
	}
	t := &Times{scheme: scheme, generators: make(map[string]*snowflake.Generator, len(layouts))}
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
			t.users = append(t.users, g)
		}
		t.generators[l.Name] = g
		t.layouts = append(t.layouts, l.Record(l.Name))
	}
	t.standard = t.generators[layouts[0].Name]
	return t, nil
}

// generator returns what makes the IDs of a key. The name of a built-in layout that is
// not served is not a label: a caller that asks for numbers that JavaScript can hold must
// not get others.
func (t *Times) generator(key string) (*snowflake.Generator, error) {
	if g, ok := t.generators[key]; ok {
		return g, nil
	}
	if _, builtIn := snowflake.Preset(key); builtIn && t.scheme == Snowflake {
		return nil, fmt.Errorf("%w: this server does not serve the layout %s under %s", leaf.ErrInvalid, key, t.scheme)
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
func (t *Times) Layouts() []worker.ServedLayout { return t.layouts }

// Generators returns what issues under the lease of a worker ID.
func (t *Times) Generators() []worker.LeaseUser { return t.users }
