package issuer

import (
	"context"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/snowflake"
)

// Times makes the IDs of a time-based scheme, of time, worker ID and sequence. The name of a layout
// as the key means that layout; every other key is a label of the default one.
type Times struct {
	scheme     string
	generators map[string]*snowflake.Generator // by the name of their layout
	standard   *snowflake.Generator
	explain    func(error) error
}

// NewTimes returns a scheme with the given layouts and their generators; the first layout is the
// default. explain adds the state of the worker ID to a generator's error.
func NewTimes(scheme string, layouts Layouts, generator func(layout string) *snowflake.Generator, explain func(error) error) *Times {
	t := &Times{scheme: scheme, generators: make(map[string]*snowflake.Generator, len(layouts)), explain: explain}
	for _, l := range layouts {
		t.generators[l.Name] = generator(l.Name)
	}
	t.standard = t.generators[layouts[0].Name]
	return t
}

// generator returns the generator of a key. The name of an unserved built-in layout is not a
// label: a caller that asks for numbers that JavaScript can hold must not get others.
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

// TakeContiguous returns n IDs that follow one another; see [snowflake.Generator.TakeContiguous].
func (t *Times) TakeContiguous(ctx context.Context, key string, n int) (leaf.Range, error) {
	g, err := t.generator(key)
	if err != nil {
		return leaf.Range{}, err
	}
	r, err := g.TakeContiguous(ctx, n)
	if err != nil {
		return leaf.Range{}, t.explain(err)
	}
	return r, nil
}

// Used reports whether IDs were issued since the start.
func (t *Times) Used() bool {
	for _, g := range t.generators {
		if g.Stats().Issued > 0 {
			return true
		}
	}
	return false
}
