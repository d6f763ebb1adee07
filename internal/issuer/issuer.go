// Package issuer maps the names that callers use, a scheme and a key, to what makes
// the IDs. Every front end issues through one [Issuer] and knows nothing behind it;
// a further scheme is one more entry in the map given to [New].
//
// [Tags] is the other half: looking at, and administering, the tags of the store
// behind the segment scheme; [Workers] is that for the worker IDs behind the
// time-based one.
package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/uuids"
	"github.com/leaf-id/leaf/segment"
)

// Names of schemes. The keys of [Segment] and [Ticket] are tags of a store.
const (
	Segment = "segment" // also that of callers who name none
	Ticket  = "ticket"  // the same, from ticket servers
	UUID    = "uuid"    // text, not numbers: see [Issuer.Texts]
)

// DefaultMaxBatch is how many IDs one Take may ask for unless configured.
const DefaultMaxBatch = 10_000

// ErrSchemeOff is wrapped by errors about a scheme that this server does not have,
// or that is not enabled.
var ErrSchemeOff = errors.New("scheme not enabled")

// A Source makes the IDs of one scheme. A [segment.Set] is one. Its methods are safe
// for concurrent use and mean what those of [leaf.Generator] mean.
type Source interface {
	Next(ctx context.Context, key string) (int64, error)
	Take(ctx context.Context, key string, dst []leaf.Range, n int) ([]leaf.Range, error)
}

// A Checker is a [Source] some of whose keys do not exist. A [segment.Set] is one.
type Checker interface {
	// Check reports why no ID of key can be had, and consumes none.
	Check(ctx context.Context, key string) error
}

// ErrBadKey is wrapped, together with [leaf.ErrInvalid], where a key cannot be the name
// of a tag.
var ErrBadKey = errors.New("bad key")

// A badKey is what is wrong with a key.
type badKey struct{ error }

func (e badKey) Unwrap() error        { return e.error }
func (e badKey) Is(target error) bool { return target == ErrBadKey }

// Options configures an [Issuer]. The zero value of a field means its default.
type Options struct {
	// MaxBatch is the most IDs that one Take may ask for; default
	// [DefaultMaxBatch].
	MaxBatch int

	// Off says why a scheme is not enabled, by its name; callers are told.
	Off map[string]string
}

// An Issuer hands out IDs by scheme and key. Its methods are safe for concurrent use.
type Issuer struct {
	sources  map[string]Source // never written after New
	maxBatch int
	off      map[string]string
}

// New returns an Issuer of the given sources, by scheme.
func New(sources map[string]Source, opts *Options) *Issuer {
	if opts == nil {
		opts = new(Options)
	}
	return &Issuer{
		sources:  maps.Clone(sources),
		maxBatch: cmp.Or(opts.MaxBatch, DefaultMaxBatch),
		off:      maps.Clone(opts.Off),
	}
}

// Schemes returns the names of the enabled schemes, sorted. [UUID], which needs
// nothing, is always one.
func (i *Issuer) Schemes() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(i.sources)), UUID)))
}

// Off says why schemes are not enabled, by their names. It is not to be changed.
func (i *Issuer) Off() map[string]string { return i.off }

// MaxBatch reports the most IDs that one Take may ask for.
func (i *Issuer) MaxBatch() int { return i.maxBatch }

// Check reports why no ID can be asked for under scheme and key: an error wrapping
// [ErrSchemeOff] or [leaf.ErrInvalid]. It consumes nothing and asks no store, so
// nil does not mean that the key exists.
func (i *Issuer) Check(scheme, key string) error {
	if scheme == UUID {
		_, err := uuids.Version(key)
		return cmp.Or(checkKey(scheme, key), err)
	}
	_, err := i.source(scheme, key)
	return err
}

// Exists reports why no ID can be had under scheme and key, as [Issuer.Next] would, as
// far as that can be known without consuming one: for keys that are tags also
// [leaf.ErrUnknownTag].
func (i *Issuer) Exists(ctx context.Context, scheme, key string) error {
	if err := i.Check(scheme, key); err != nil {
		return err
	}
	if source, ok := i.sources[scheme].(Checker); ok {
		return source.Check(ctx, key)
	}
	return nil
}

// Next returns one ID. An empty scheme means [Segment], whose key is not empty, nor is
// that of [Ticket]. It wraps [ErrSchemeOff], [leaf.ErrInvalid] for a malformed key, or what the scheme's
// source returns.
func (i *Issuer) Next(ctx context.Context, scheme, key string) (int64, error) {
	source, err := i.source(scheme, key)
	if err != nil {
		return 0, err
	}
	return source.Next(ctx, key)
}

// Take appends n IDs, 1 … [Issuer.MaxBatch], to dst as few ranges, in the order in
// which they are issued. Its errors are those of [Issuer.Next]; n out of range is
// [leaf.ErrInvalid]. On an error dst is returned as it was.
func (i *Issuer) Take(ctx context.Context, scheme, key string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	source, err := i.source(scheme, key)
	if err != nil {
		return dst, err
	}
	if err := i.CheckCount(n); err != nil {
		return dst, err
	}
	return source.Take(ctx, key, dst, n)
}

// CheckCount reports, wrapping [leaf.ErrInvalid], why n IDs cannot be taken at once.
func (i *Issuer) CheckCount(n int) error {
	if n < 1 || n > i.maxBatch {
		return fmt.Errorf("%w: %d IDs at once; ask for 1 to %d", leaf.ErrInvalid, n, i.maxBatch)
	}
	return nil
}

// Texts returns n IDs, 1 … [Issuer.MaxBatch], of a scheme whose IDs are text, in the
// order in which they are issued: UUIDs of version 4 under the key v4, otherwise of
// version 7. Its errors are those of [Issuer.Take].
func (i *Issuer) Texts(scheme, key string, n int) ([]string, error) {
	if scheme != UUID {
		return nil, fmt.Errorf("%w: the IDs of %q are numbers", leaf.ErrInvalid, scheme)
	}
	if err := cmp.Or(checkKey(scheme, key), i.CheckCount(n)); err != nil {
		return nil, err
	}
	version, err := uuids.Version(key)
	if err != nil {
		return nil, err
	}
	generator, err := uuids.New(version)
	if err != nil {
		return nil, err
	}
	return generator.Append(make([]string, 0, n), n)
}

func (i *Issuer) source(scheme, key string) (Source, error) {
	if scheme == "" {
		scheme = Segment
	}
	if scheme == UUID {
		return nil, fmt.Errorf("%w: UUIDs are text: this caller takes numbers only", leaf.ErrInvalid)
	}
	source, ok := i.sources[scheme]
	if !ok {
		return nil, i.schemeOff(scheme)
	}
	return source, checkKey(scheme, key)
}

// checkKey reports, wrapping [ErrBadKey], what is no key of a scheme. Those of the
// time-based ones are labels, of any form.
func checkKey(scheme, key string) error {
	if scheme == Snowflake || scheme == UID || scheme == UUID && key == "" {
		return nil
	}
	if err := segment.CheckTagName(key); err != nil {
		return badKey{err}
	}
	return nil
}

func (i *Issuer) schemeOff(scheme string) error {
	why := i.off[scheme]
	if scheme == Ticket {
		why = "the store is no set of ticket servers (ticket+mysql://…)"
	}
	if why != "" {
		return fmt.Errorf("%w: %q: %s", ErrSchemeOff, scheme, why)
	}
	return fmt.Errorf("%w: %q; this server has: %s", ErrSchemeOff, scheme, strings.Join(i.Schemes(), ", "))
}
