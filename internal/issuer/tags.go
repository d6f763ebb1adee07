package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// Bounds on a caller's use of a store. A caller's own context may be shorter.
const (
	probeTimeout  = 2 * time.Second
	changeTimeout = 10 * time.Second
	listTimeout   = time.Minute
)

// Segments is what [Tags] needs of the generators that issue from the store. The result of
// [segment.Set.Server] is one.
type Segments interface {
	Stock
	Known(tag string) int64
	StoreID() string
	Ready() <-chan struct{}
	Stats() []segment.Stats
	Failing() iter.Seq[segment.Stats]
}

// Stock is the generators' memory, which must hear of changes. Forget runs a change that must not
// look like lost writes.
type Stock interface {
	Forget(tag string, change func() error) error
	Changed(tag segment.Tag)
	DropBelow(tag string, below int64) (dropped int64)
}

// noSegments replaces generators if nothing issues from the store.
type noSegments struct{}

func (noSegments) Forget(_ string, change func() error) error { return change() }
func (noSegments) Changed(segment.Tag)                        {}
func (noSegments) Known(string) int64                         { return 0 }
func (noSegments) DropBelow(string, int64) int64              { return 0 }
func (noSegments) StoreID() string                            { return "" }
func (noSegments) Ready() <-chan struct{}                     { return nil }
func (noSegments) Stats() []segment.Stats                     { return nil }
func (noSegments) Failing() iter.Seq[segment.Stats]           { return func(func(segment.Stats) bool) {} }

// Tags administers the tags of one store. Its methods are safe for concurrent use.
type Tags struct {
	store    segment.Store
	segments Segments
	keys     segment.MaskKeys // of new tags
	log      *slog.Logger
}

// NewTags returns the administration of store. segments is what issues from it in this process, nil
// if nothing does. Each change is logged once to logger; nil discards.
func NewTags(store segment.Store, segments Segments, logger *slog.Logger) *Tags {
	return &Tags{store, cmp.Or[Segments](segments, noSegments{}), nil, cmp.Or(logger, slog.New(slog.DiscardHandler))}
}

// UseMaskKeys has new tags with a mask get these keys. It must come before all other calls.
func (t *Tags) UseMaskKeys(keys segment.MaskKeys) { t.keys = keys }

// StoreID returns the identity of the store, empty where it is not known.
func (t *Tags) StoreID() string { return t.segments.StoreID() }

// Ready reports whether the store has answered since the process started.
func (t *Tags) Ready() bool {
	select {
	case <-t.segments.Ready():
		return true
	default:
		return false
	}
}

// Stats describes each tag in use, sorted by tag.
func (t *Tags) Stats() []segment.Stats { return t.segments.Stats() }

// Failing describes the tags in use whose latest call to the store failed, sorted by tag. Its cost
// does not depend on the others.
func (t *Tags) Failing() []segment.Stats {
	return slices.SortedFunc(t.segments.Failing(), func(a, b segment.Stats) int { return strings.Compare(a.Tag, b.Tag) })
}

// Probe asks the store something and reports why it does not answer within 2 s.
func (t *Tags) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, err := range t.store.Tags(ctx) {
		if err != nil && ctx.Err() == context.DeadlineExceeded {
			return fmt.Errorf("no answer within %v: %w", probeTimeout, failed(err))
		}
		return failed(err)
	}
	return nil
}

// All lists all tags in the order of the store, as [segment.Store] does, for at most a minute.
func (t *Tags) All(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		for tag, err := range t.store.Tags(ctx) {
			if err != nil { // also for the log: not every caller gets the text
				t.log.Warn("the tags cannot be listed", "err", err)
			}
			if !yield(tag, failed(err)) {
				return
			}
		}
	}
}

// failed marks an error of the store.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &leaf.StoreError{Err: err}
}

// ordinary are errors about a caller's request.
var ordinary = []error{leaf.ErrUnknownTag, leaf.ErrTagExists, leaf.ErrRegression, leaf.ErrOverflow}

// failed marks the store's error after a change. It also logs a fault of the store: not every
// caller gets the text.
func (t *Tags) failed(err error) error {
	if err != nil && !slices.ContainsFunc(ordinary, func(o error) bool { return errors.Is(err, o) }) {
		t.log.Warn("a tag could not be changed", "err", err)
	}
	return failed(err)
}

// Create adds a tag and returns it, with the max_id at which it starts. It wraps [leaf.ErrInvalid],
// [leaf.ErrTagExists] or [leaf.ErrUnsupported].
func (t *Tags) Create(ctx context.Context, tag segment.Tag) (segment.Tag, error) {
	catalog, err := t.catalog()
	if err == nil {
		err = cmp.Or(tag.Check(), tag.Options.CheckKnown())
	}
	if _, relayed := t.store.(upstream); err == nil && !relayed { // else the server behind knows the keys
		tag.Options, err = t.keys.Complete(tag.Options)
	}
	if err != nil {
		return segment.Tag{}, fmt.Errorf("create tag %q: %w", tag.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := catalog.Create(ctx, tag); err != nil {
		return segment.Tag{}, t.failed(err)
	}
	// A deleted tag of the name may have it start higher.
	if now, err := catalog.Alter(ctx, tag.Name, segment.Change{}); err == nil {
		tag.MaxID = max(tag.MaxID, now.MaxID)
	}
	t.segments.Changed(tag)
	audit(ctx, t.log, "tag created", nil, &tag, "tag", tag.Name)
	return tag, nil
}

// Delete removes a tag; this process never issues the rest of its stock. The store keeps the
// counter for a new tag of that name, or this process's knowledge of it if that is higher: the
// store may have lost writes. The error wraps [leaf.ErrUnknownTag] or [leaf.ErrUnsupported].
func (t *Tags) Delete(ctx context.Context, name string) error {
	catalog, err := t.catalog()
	if err == nil {
		err = segment.CheckTagName(name)
	}
	if err != nil {
		return fmt.Errorf("delete tag %q: %w", name, err)
	}
	var before *segment.Tag
	err = t.forget(ctx, name, func(ctx context.Context) error {
		before = t.before(ctx, name)
		if mark := t.segments.Known(name); mark > 0 && (before == nil || before.MaxID < mark) {
			_, err := catalog.Alter(ctx, name, segment.Change{MaxID: &mark})
			if err != nil && !errors.Is(err, leaf.ErrRegression) { // the counter is higher
				return err
			}
		}
		return catalog.Delete(ctx, name)
	})
	if err != nil {
		return t.failed(err)
	}
	audit(ctx, t.log, "tag deleted", before, nil, "tag", name)
	return nil
}

// forget runs a change that must not look like lost writes, once the calls to the store before it
// have ended.
func (t *Tags) forget(ctx context.Context, name string, change func(context.Context) error) error {
	return t.segments.Forget(name, func() error { return inTime(ctx, change) })
}

func inTime(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return change(ctx)
}

// A Change says what [Tags.Alter] is to change; nil fields stay as they are.
type Change struct {
	segment.Change

	// RaiseBy is how many IDs to skip, at least 1: the counter goes up by so many
	// from wherever it stands. Not together with MaxID.
	RaiseBy *int64
}

// Check reports, wrapping [leaf.ErrInvalid], why c cannot be applied to any tag.
func (c Change) Check() error {
	switch {
	case c.Change.IsZero() && c.RaiseBy == nil:
		return fmt.Errorf("%w: nothing to change", leaf.ErrInvalid)
	case c.MaxID != nil && c.RaiseBy != nil:
		return fmt.Errorf("%w: either set max_id or raise it, not both", leaf.ErrInvalid)
	case c.RaiseBy != nil && *c.RaiseBy < 1:
		return fmt.Errorf("%w: the counter cannot be raised by %d", leaf.ErrInvalid, *c.RaiseBy)
	}
	return cmp.Or(c.Change.Check(), c.Options.CheckKnown())
}

// Alter changes a tag and returns it as it then is; where the counter was only raised,
// its description may be left out. It wraps [leaf.ErrInvalid],
// [leaf.ErrUnknownTag], [leaf.ErrRegression], [leaf.ErrOverflow] or, where the store
// cannot do what c asks for, [leaf.ErrUnsupported]. RaiseBy works on every store and
// comes last: when it fails, the rest has been changed.
func (t *Tags) Alter(ctx context.Context, name string, c Change) (segment.Tag, error) {
	err := segment.CheckTagName(name)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	tag := segment.Tag{Name: name}
	if !c.Change.IsZero() {
		if tag, err = t.alter(ctx, name, c.Change); err != nil {
			return segment.Tag{}, err
		}
	}
	if c.RaiseBy == nil {
		return tag, nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return t.raise(ctx, tag, *c.RaiseBy)
}

func (t *Tags) alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	catalog, err := t.catalog()
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	var before *segment.Tag
	var tag segment.Tag
	alter := func(ctx context.Context) (err error) {
		before = t.before(ctx, name)
		tag, err = catalog.Alter(ctx, name, change)
		return err
	}
	if change.Force && change.MaxID != nil {
		err = t.forget(ctx, name, alter)
	} else {
		err = inTime(ctx, alter)
	}
	if err != nil {
		return segment.Tag{}, t.failed(err)
	}
	t.segments.Changed(tag)
	audit(ctx, t.log, "tag altered", before, &tag, "tag", name, "force", change.Force)
	return tag, nil
}

// raise allocates n IDs and discards them: an absolute value could lower a counter that others move
// at the same time. It returns the tag after the last allocation.
func (t *Tags) raise(ctx context.Context, tag segment.Tag, n int64) (segment.Tag, error) {
	var after segment.Tag
	switch store := t.store.(type) {
	case segment.Lifter:
		return t.raiseAll(ctx, tag.Name, n)
	case upstream:
		return t.raiseUpstream(ctx, store, tag.Name, n)
	}
	before, left := tag, n
	defer func() {
		if left < n { // also where only a part was raised
			audit(ctx, t.log, "tag raised", &before, &after, "tag", after.Name, "by_ids", n-left)
		}
	}()
	for left > 0 {
		grant, err := t.advance(ctx, tag.Name, left)
		switch {
		case errors.Is(err, segment.ErrPeriodic), errors.Is(err, segment.ErrMasked): // the least number of each period rises
			return t.raiseAll(ctx, tag.Name, n)
		case errors.Is(err, leaf.ErrUnknownTag):
			return segment.Tag{}, fmt.Errorf("raise tag %q: %w", tag.Name, leaf.ErrUnknownTag)
		case err != nil && left == n:
			return segment.Tag{}, t.failed(err)
		case err != nil:
			return segment.Tag{}, fmt.Errorf("raised by %d of %d: %w", n-left, n, t.failed(err))
		}
		if left == n {
			before.MaxID, before.Step = grant.Range.Start, grant.Step
		}
		left -= grant.Range.Len()
		tag.MaxID, tag.Step = grant.Range.End, grant.Step
		after = tag
	}
	return tag, nil
}

// advance advances a tag of either order by n, at least 1, past IDs that no caller gets. A tag with
// periods is [segment.ErrPeriodic], one with a mask [segment.ErrMasked].
func (t *Tags) advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := t.store.Advance(ctx, tag, n)
	strict, ok := t.store.(segment.StrictStore)
	if ok && errors.Is(err, segment.ErrStrict) && !errors.Is(err, segment.ErrPeriodic) && !errors.Is(err, segment.ErrMasked) {
		return strict.AdvanceStrict(ctx, tag, "", n)
	}
	return grant, err
}

func (t *Tags) raiseUpstream(ctx context.Context, up upstream, name string, n int64) (segment.Tag, error) {
	tag, err := up.RaiseTag(ctx, name, n)
	if err != nil {
		return segment.Tag{}, t.failed(err)
	}
	audit(ctx, t.log, "tag raised", nil, &tag, "tag", name, "by_ids", n)
	return tag, nil
}

// raiseAll raises all counters of a tag by n above the highest of them: those of its periods, or
// those of a store that deals in small units. To allocate n IDs would take too long there, and
// leave the other counters behind.
func (t *Tags) raiseAll(ctx context.Context, name string, n int64) (tag segment.Tag, err error) {
	for {
		highest, err := t.highestPeriod(ctx, name)
		if err == nil && highest > math.MaxInt64-n {
			err = fmt.Errorf("%w: a period is at %d", leaf.ErrOverflow, highest)
		}
		if err != nil {
			return segment.Tag{}, fmt.Errorf("raise tag %q: %w", name, err)
		}
		tag, err = t.lift(ctx, name, n, highest+n)
		if !errors.Is(err, leaf.ErrRegression) { // else others drew more than n meanwhile
			return tag, err
		}
	}
}

// lift raises all counters of a tag by n above the highest of them, and at least to floor. It
// wraps [leaf.ErrRegression] if others were granted higher IDs meanwhile.
func (t *Tags) lift(ctx context.Context, name string, n, floor int64) (tag segment.Tag, err error) {
	catalog, err := t.catalog()
	if err == nil {
		// A listing leaves out servers that do not answer; this one asks all of them,
		// and writes nothing.
		tag, err = catalog.Alter(ctx, name, segment.Change{})
		err = t.failed(err)
	}
	switch {
	case err != nil:
		return segment.Tag{}, fmt.Errorf("raise tag %q: %w", name, err)
	case tag.MaxID > math.MaxInt64-n:
		return segment.Tag{}, fmt.Errorf("raise tag %q: %w: max_id is %d", name, leaf.ErrOverflow, tag.MaxID)
	}
	to := max(tag.MaxID+n, floor)
	return t.alter(ctx, name, segment.Change{MaxID: &to})
}

func (t *Tags) catalog() (segment.Catalog, error) {
	catalog, ok := t.store.(segment.Catalog)
	if !ok {
		return nil, leaf.ErrUnsupported
	}
	return catalog, nil
}
