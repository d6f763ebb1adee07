package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-id/leaf"
)

// ErrNotCreated is wrapped by stores that do not exist yet: an init creates them.
var ErrNotCreated = errors.New("the store was not created")

// ErrDamaged is wrapped by stores that cannot read a counter, or its step: an operator must set
// it again, above every ID in use.
var ErrDamaged = errors.New("the tag is damaged")

// ErrNeedsResize is wrapped by stores of several servers whose set does not fit together:
// a resize makes a set of them.
var ErrNeedsResize = errors.New("the set of servers must be resized")

// ErrStoreDamaged is wrapped where the data of a store is damaged or was replaced: once a
// backup is in its place every counter must be raised above the IDs in use.
var ErrStoreDamaged = errors.New("the store is damaged or was replaced")

// A Store durably advances named counters. Package drivertest defines the duties of an
// implementation, as a test suite. All methods are safe for concurrent use and return soon
// after ctx ends.
type Store interface {
	// Advance atomically and durably moves tag's counter forward by up to n and returns the
	// non-empty range, of at most n IDs, that the caller now owns alone; fewer than n where the
	// source deals in smaller units. n = 0 means the tag's own configured step. A negative n is an
	// error wrapping [leaf.ErrInvalid].
	//
	// Ranges returned to anyone, anywhere, never overlap, also when an earlier call returned an
	// error although its write had succeeded: the IDs of such a call are lost, never issued twice.
	//
	// Advance wraps [leaf.ErrUnknownTag] when no such tag exists; names are
	// compared byte for byte. It wraps [leaf.ErrOverflow], and changes nothing,
	// when the counter would pass the largest int64.
	Advance(ctx context.Context, tag string, n int64) (Grant, error)

	// Tags lists all tags, for people and for noticing removed ones. An error ends
	// the listing; only a listing that ends without one proves that a tag is absent.
	Tags(ctx context.Context) iter.Seq2[Tag, error]
}

// A Grant is what one [Store.Advance] returns.
type Grant struct {
	// The caller owns Range from now on.
	Range leaf.Range

	// Step is the tag's configured step at the time of the call, at least 1.
	Step int64

	// Source names the counter that the range came from. Ranges of one source only
	// go up. A store with one counter per tag leaves it empty.
	Source string

	// Server identifies the answering server, if one server of the store may take over without the
	// last writes of another. Empty, or always the same, if acknowledged writes are never lost. A
	// change makes the reader distrust the counter (see the package documentation).
	Server string

	// Store is the identity of the store: drawn when it was created, kept in it, and read by
	// the very statement that made the grant. A grant with another identity than the earlier
	// ones is discarded. Empty: the store has no place for one.
	Store string

	// Period is that of the counter, of a tag with periods; Source is then the same, unless the
	// grant is Guarded.
	Period string

	// Masked are the hidden numbers of a tag with a mask, in place of Range: from a server with the
	// key.
	Masked []int64

	// Guarded says that the source is another server with a regression guard of its own. Its
	// ranges come in no order, and nothing is remembered of them.
	Guarded bool

	// Version names the write that made the grant, for [Returner]: no other write of the
	// counter has it, not even a write of the same value, at least if the two are a second
	// apart. Empty if the store takes nothing back.
	Version string
}

// A Tag describes one counter.
type Tag struct {
	Name    string
	MaxID   int64 // one past the highest ID allocated to anyone
	Step    int64 // the least number of IDs to allocate at once, 1 … 2^31-1
	Options TagOptions
	Updated time.Time // of the last change; zero where the store does not know
}

// Same reports whether the tags are alike.
func (t Tag) Same(u Tag) bool {
	return t.Name == u.Name && t.MaxID == u.MaxID && t.Step == u.Step && maps.Equal(t.Options, u.Options) && t.Updated.Equal(u.Updated)
}

// A Lifter is a [Store] whose counters cannot be moved far by an Advance, because it
// deals in small units.
type Lifter interface {
	// Lift moves the counter of a [Grant].Source up to floor, if it is below. It
	// never lowers a counter, and may be repeated.
	Lift(ctx context.Context, tag, source string, floor int64) error
}

// A Returner is a [Store] that can take back the unused end of a grant.
type Returner interface {
	// Return moves tag's counter back from last.Range.End to start if, and only if, the
	// write that made the grant is the counter's last one: last.Version says so, and
	// last.Server where that is not empty. A counter of the same value alone
	// proves nothing. Where the store lost the grant, it may have granted the same IDs to
	// another process since. A Return is a write as well: the grant before the one that went
	// back stays, because a process remembers where the counter stood.
	//
	// It is sent at most once: neither the implementation nor a client library below it
	// repeats the write, because a repeated one could take an equal range away from under
	// a new owner. An error means that the outcome is unknown or that nothing was taken
	// back; either way the range is lost.
	Return(ctx context.Context, tag string, last Grant, start int64) error
}

// A Lister is a [Store] that can list names and steps for less than [Store.Tags] costs.
type Lister interface {
	// Steps lists the names, the steps and the options of all tags as Tags does; it may leave out
	// the description.
	Steps(ctx context.Context) iter.Seq2[Tag, error]
}

// A Digester is a [Store] that can tell for much less than a listing costs whether its tags are
// the same as before.
type Digester interface {
	// Digest returns the same text as before if the store still has the same tags, steps and
	// options, apart from descriptions, and else another one. Empty: the store cannot tell.
	Digest(ctx context.Context) (string, error)
}

// A Catalog is a [Store] whose tags can be administered.
type Catalog interface {
	// Create adds a tag. It wraps [leaf.ErrTagExists] if the name is taken. Where a tag of the
	// name was deleted, the new one starts at the higher of MaxID and the deleted counter:
	// other processes may still issue IDs of the deleted tag. Only Alter with Force goes lower.
	Create(ctx context.Context, tag Tag) error

	// Alter changes a tag and returns it as it then is. It wraps [leaf.ErrUnknownTag], and
	// [leaf.ErrRegression] if MaxID is below the counter and Force is not set.
	Alter(ctx context.Context, name string, change Change) (Tag, error)

	// Delete removes a tag and, in the same write, keeps its counter for Create. It wraps
	// [leaf.ErrUnknownTag].
	Delete(ctx context.Context, name string) error
}

// A Change says what [Catalog.Alter] is to change; nil fields stay as they are.
type Change struct {
	Step    *int64
	MaxID   *int64
	Force   bool       // allow MaxID to lower the counter: IDs may then be issued twice
	Options TagOptions // new values; an empty one removes the option
}

// IsZero reports whether c changes nothing.
func (c Change) IsZero() bool { return c.Step == nil && c.MaxID == nil && len(c.Options) == 0 }

// Apply returns tag with the change made. It wraps [leaf.ErrRegression] if that would lower
// the counter without Force.
func (c Change) Apply(tag Tag) (Tag, error) {
	if c.MaxID != nil && *c.MaxID < tag.MaxID && !c.Force {
		return Tag{}, fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, tag.MaxID, *c.MaxID)
	}
	if c.MaxID != nil {
		tag.MaxID = *c.MaxID
	}
	if c.Step != nil {
		tag.Step = *c.Step
	}
	var err error
	tag.Options, err = tag.Options.Change(c.Options)
	return tag, err
}

// Limits of tags, those of Java Leaf's table.
const (
	MaxTagLength = 128       // characters
	MaxStep      = 1<<31 - 1 // IDs

	maxPeriodicName = 100 // characters: stores add the period
)

// CheckTagName reports, wrapping [leaf.ErrInvalid], why name cannot name a tag: it is empty, longer
// than [MaxTagLength] characters, not UTF-8, or holds a control character.
func CheckTagName(name string) error {
	switch {
	case isPlain(name): // nearly all are
		return nil
	case name == "":
		return fmt.Errorf("%w: the tag is empty", leaf.ErrInvalid)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the tag is not valid UTF-8", leaf.ErrInvalid)
	case utf8.RuneCountInString(name) > MaxTagLength:
		return fmt.Errorf("%w: the tag is longer than %d characters", leaf.ErrInvalid, MaxTagLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: the tag holds a control character", leaf.ErrInvalid)
	}
	return nil
}

// isPlain reports whether name is one without a look at its characters: it is not empty, short,
// and of printable ASCII.
func isPlain(name string) bool {
	if name == "" || len(name) > MaxTagLength {
		return false
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return false
		}
	}
	return true
}

// CheckKnown reports, wrapping [leaf.ErrUnknownTag], a name that no tag can have: a store
// need not be asked for it.
func CheckKnown(name string) error {
	if err := CheckTagName(name); err != nil {
		return fmt.Errorf("%w: %w", leaf.ErrUnknownTag, err)
	}
	return nil
}

// Check reports, wrapping [leaf.ErrInvalid], why t cannot be created.
func (t Tag) Check() error {
	if err := CheckTagName(t.Name); err != nil {
		return err
	}
	if t.Options.Periodic() && utf8.RuneCountInString(t.Name) > maxPeriodicName {
		return fmt.Errorf("%w: the name of a tag with periods has at most %d characters", leaf.ErrInvalid, maxPeriodicName)
	}
	return cmp.Or(Change{Step: &t.Step, MaxID: &t.MaxID}.Check(), t.Options.Check(), t.Options.checkForm(), t.Options.CheckCounter(t.MaxID))
}

// CheckTags reports, wrapping [leaf.ErrInvalid], why tags cannot be created together: one
// of them cannot be created, or two have one name.
func CheckTags(tags []Tag) error {
	seen := make(map[string]bool, len(tags))
	for _, tag := range tags {
		if err := tag.Check(); err != nil {
			return fmt.Errorf("tag %q: %w", tag.Name, err)
		}
		if seen[tag.Name] {
			return fmt.Errorf("tag %q: %w: it is named twice", tag.Name, leaf.ErrInvalid)
		}
		seen[tag.Name] = true
	}
	return nil
}

// Check reports, wrapping [leaf.ErrInvalid], why c cannot be applied to any tag.
func (c Change) Check() error {
	switch {
	case c.Step != nil && (*c.Step < 1 || *c.Step > MaxStep):
		return fmt.Errorf("%w: step %d is not in 1 … %d", leaf.ErrInvalid, *c.Step, int64(MaxStep))
	case c.MaxID != nil && *c.MaxID < 0:
		return fmt.Errorf("%w: max_id %d is negative", leaf.ErrInvalid, *c.MaxID)
	}
	return c.Options.checkChange()
}
