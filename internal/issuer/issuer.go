// Package issuer maps callers' names, a scheme and a key, to the sources of IDs. Every front end
// issues through one [Issuer] and knows nothing behind it; a further scheme is one more row of
// [Schemes], and a source for [New].
//
// [Tags] is the other half: it reads and administers the tags of the store behind the segment
// scheme. [Workers] does so for the worker IDs behind the time-based schemes.
package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// How many IDs a caller may ask for at once unless configured: one by one, and as ranges.
const (
	DefaultMaxBatch = 10_000
	DefaultMaxRange = 1_000_000
)

// ErrSchemeOff is wrapped by errors about an unknown or disabled scheme.
var ErrSchemeOff = errors.New("scheme not enabled")

// ErrNoScheme is wrapped by errors about an unknown scheme, those of an [Issuer] with
// [ErrSchemeOff].
var ErrNoScheme = errors.New("no such scheme")

// A noScheme is the fault of an unknown scheme.
type noScheme struct{ error }

func (e noScheme) Unwrap() error        { return e.error }
func (e noScheme) Is(target error) bool { return target == ErrNoScheme }

// An ID is a number, or the text of a scheme whose IDs are text.
type ID struct {
	Number int64
	Text   string
}

// Append appends id to dst as people write it.
func (id ID) Append(dst []byte) []byte {
	if id.Text != "" {
		return append(dst, id.Text...)
	}
	return strconv.AppendInt(dst, id.Number, 10)
}

// IDs are numbers, or texts if the scheme's IDs are text, in the order of issue.
type IDs struct {
	Ranges []leaf.Range
	Texts  Texts
	Period string // of the numbers; empty: they belong to no period
}

// Texts are text IDs. Reading makes them, so that an unwritten answer takes no memory.
type Texts struct {
	n    int
	make func() string
}

// Len returns the number of texts.
func (t Texts) Len() int { return t.n }

// All yields the IDs one by one. Texts are other ones each time.
func (ids IDs) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		rest := IDs{slices.Clone(ids.Ranges), ids.Texts, ids.Period}
		for id, ok := rest.Shift(); ok && yield(id); id, ok = rest.Shift() {
		}
	}
}

// Shift removes the first ID and returns it; false: it was empty.
func (ids *IDs) Shift() (ID, bool) {
	for len(ids.Ranges) > 0 {
		if r := &ids.Ranges[0]; r.Start < r.End {
			r.Start++
			return ID{Number: r.Start - 1}, true
		}
		ids.Ranges = ids.Ranges[1:]
	}
	if ids.Texts.n == 0 {
		return ID{}, false
	}
	ids.Texts.n--
	return ID{Text: ids.Texts.make()}, true
}

// A Source makes the IDs of one scheme; see [Numbers] and [UUIDs]. Its methods are safe for
// concurrent use. Take returns n IDs, or an error without IDs.
type Source interface {
	Next(ctx context.Context, key string) (ID, error)
	Take(ctx context.Context, key string, n int) (IDs, error)

	// Check reports why no ID of key can be had, as far as that can be known without consuming one.
	Check(ctx context.Context, key string) error
}

// A KeyedGenerator makes 64-bit IDs under keys, as a [leaf.Generator] makes them without. A
// [segment.Set] is one.
type KeyedGenerator interface {
	Next(ctx context.Context, key string) (int64, error)
	Take(ctx context.Context, key string, dst []leaf.Range, n int) ([]leaf.Range, error)
}

// Numbers returns the source that g is. A method Check of g is its method of that name.
func Numbers(g KeyedGenerator) Source { return numbers{g} }

type numbers struct{ KeyedGenerator }

func (s numbers) Next(ctx context.Context, key string) (ID, error) {
	id, err := s.KeyedGenerator.Next(ctx, key)
	return ID{Number: id}, err
}

func (s numbers) Take(ctx context.Context, key string, n int) (IDs, error) {
	ranges, err := s.KeyedGenerator.Take(ctx, key, nil, n)
	return IDs{Ranges: ranges}, err
}

func (s numbers) Check(ctx context.Context, key string) error {
	if c, ok := s.KeyedGenerator.(interface {
		Check(ctx context.Context, key string) error
	}); ok {
		return c.Check(ctx, key)
	}
	return nil
}

// ErrBadKey is wrapped, together with [leaf.ErrInvalid], where a key cannot be the name of a tag.
var ErrBadKey = errors.New("bad key")

// A badKey is the fault of a key.
type badKey struct{ error }

func (e badKey) Unwrap() error        { return e.error }
func (e badKey) Is(target error) bool { return target == ErrBadKey }

// Options configures an [Issuer]. The zero value of a field means its default.
type Options struct {
	// MaxBatch is the most IDs that one Take may ask for; default [DefaultMaxBatch].
	MaxBatch int

	// MaxRange is the most IDs that one AppendRanges or TakeContiguous may ask for;
	// default [DefaultMaxRange].
	MaxRange int

	// Off has the reason for each disabled scheme, by its name, for callers.
	Off map[string]string
}

// An Issuer hands out IDs by scheme and key. Its methods are safe for concurrent use.
type Issuer struct {
	sources  map[string]enabled // never written after New
	maxBatch int
	maxRange int
	off      map[string]string
}

// An enabled source serves tags or labels.
type enabled struct {
	Source
	tags bool
}

// New returns an Issuer of the given sources, by scheme, and of [UUIDs], which need nothing.
func New(sources map[string]Source, opts *Options) *Issuer {
	if opts == nil {
		opts = new(Options)
	}
	all := map[string]enabled{UUID: {Source: UUIDs{}}}
	for scheme, source := range sources {
		all[scheme] = enabled{source, SchemeOf(scheme).Tags}
	}
	return &Issuer{
		sources:  all,
		maxBatch: cmp.Or(opts.MaxBatch, DefaultMaxBatch),
		maxRange: cmp.Or(opts.MaxRange, DefaultMaxRange),
		off:      maps.Clone(opts.Off),
	}
}

// Schemes returns the names of the enabled schemes, sorted.
func (i *Issuer) Schemes() []string { return slices.Sorted(maps.Keys(i.sources)) }

// Off says why schemes are not enabled, by their names. It must not be changed.
func (i *Issuer) Off() map[string]string { return i.off }

// MaxBatch reports the most IDs that one Take may ask for.
func (i *Issuer) MaxBatch() int { return i.maxBatch }

// MaxRange reports the most IDs that one AppendRanges or TakeContiguous may ask for.
func (i *Issuer) MaxRange() int { return i.maxRange }

// Check reports why no ID can be asked for under scheme and key: an error wrapping
// [ErrSchemeOff] or [leaf.ErrInvalid]. It consumes nothing and asks no store, so
// nil does not mean that the key exists.
func (i *Issuer) Check(scheme, key string) error {
	_, err := i.source(scheme, key)
	return err
}

// Exists returns the error that [Issuer.Next] would return for scheme and key, as far as the issuer
// can know it without taking an ID. For tags this includes [leaf.ErrUnknownTag].
func (i *Issuer) Exists(ctx context.Context, scheme, key string) error {
	source, err := i.source(scheme, key)
	if err != nil {
		return err
	}
	return source.Check(ctx, key)
}

// Next returns one ID. An empty scheme means [Segment]. The keys of [Segment] and [Ticket] must not
// be empty. The error wraps [ErrSchemeOff], [leaf.ErrInvalid] for a malformed key, or an error of
// the scheme's source.
func (i *Issuer) Next(ctx context.Context, scheme, key string) (ID, error) {
	source, err := i.source(scheme, key)
	if err != nil {
		return ID{}, err
	}
	return source.Next(ctx, key)
}

// Take returns n IDs, 1 … [Issuer.MaxBatch]. Its errors are those of [Issuer.Next]; n
// out of range is [leaf.ErrInvalid].
func (i *Issuer) Take(ctx context.Context, scheme, key string, n int) (IDs, error) {
	source, err := i.source(scheme, key)
	if err == nil {
		err = i.CheckCount(n)
	}
	if err != nil {
		return IDs{}, err
	}
	return source.Take(ctx, key, n)
}

// AppendRanges appends n IDs, 1 … [Issuer.MaxRange], as few ranges. Its errors are those of
// [Issuer.Next]; [leaf.ErrInvalid] also where the IDs of a scheme are text.
func (i *Issuer) AppendRanges(ctx context.Context, scheme, key string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	source, err := i.numbers(scheme, key, n)
	if err != nil {
		return dst, err
	}
	return source.KeyedGenerator.Take(ctx, key, dst, n)
}

// TakeContiguous returns n IDs that follow one another. Its errors are those of
// [Issuer.AppendRanges], and [leaf.ErrNotContiguous] where the source has no such range.
func (i *Issuer) TakeContiguous(ctx context.Context, scheme, key string, n int) (leaf.Range, error) {
	source, err := i.numbers(scheme, key, n)
	if err != nil {
		return leaf.Range{}, err
	}
	taker, ok := source.KeyedGenerator.(contiguousTaker)
	if !ok {
		return leaf.Range{}, fmt.Errorf("%w: %s has none", leaf.ErrNotContiguous, scheme)
	}
	return taker.TakeContiguous(ctx, key, n)
}

// A contiguousTaker is a [KeyedGenerator] with ranges of any length, within bounds of its own.
type contiguousTaker interface {
	TakeContiguous(ctx context.Context, key string, n int) (leaf.Range, error)
}

var (
	_ contiguousTaker = (*segment.Set)(nil)
	_ contiguousTaker = (*Times)(nil)
)

// numbers returns the source of a scheme whose IDs are numbers, for n of them.
func (i *Issuer) numbers(scheme, key string, n int) (numbers, error) {
	source, err := i.source(scheme, key)
	if err != nil {
		return numbers{}, err
	}
	of, ok := source.(numbers)
	if !ok {
		return numbers{}, fmt.Errorf("%w: the IDs of %s are text, which has no ranges", leaf.ErrInvalid, scheme)
	}
	return of, i.CheckRange(n)
}

// CheckCount reports, wrapping [leaf.ErrInvalid], why n IDs cannot be taken one by one.
func (i *Issuer) CheckCount(n int) error { return checkCount(int64(n), int64(i.maxBatch)) }

// CheckRange reports, wrapping [leaf.ErrInvalid], why n IDs cannot be taken as ranges.
func (i *Issuer) CheckRange(n int) error { return checkCount(int64(n), int64(i.maxRange)) }

func checkCount(n, most int64) error {
	if n < 1 || n > most {
		return fmt.Errorf("%w: %d IDs at once; ask for 1 to %d", leaf.ErrInvalid, n, most)
	}
	return nil
}

func (i *Issuer) source(scheme, key string) (Source, error) {
	scheme = cmp.Or(scheme, Segment)
	source, ok := i.sources[scheme]
	if !ok {
		return nil, i.schemeOff(scheme)
	}
	if source.tags {
		if err := segment.CheckTagName(key); err != nil {
			return nil, badKey{err}
		}
	}
	return source.Source, nil
}

func (i *Issuer) schemeOff(scheme string) error {
	why := i.off[scheme]
	if scheme == Ticket {
		why = "the store is not a set of ticket servers (ticket+mysql://…)"
	}
	if why != "" {
		return fmt.Errorf("%w: %q: %s", ErrSchemeOff, scheme, why)
	}
	return noScheme{fmt.Errorf("%w: %q; this server has: %s", ErrSchemeOff, scheme, strings.Join(i.Schemes(), ", "))}
}
