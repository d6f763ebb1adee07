package kv

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// tagText is the content of a tag's cell.
type tagText struct {
	Version     int                `json:"v"`
	Deleted     bool               `json:"deleted,omitempty"`
	MaxID       int64              `json:"max_id"`
	Step        int64              `json:"step"`
	Description string             `json:"description,omitempty"`
	Options     segment.TagOptions `json:"options,omitempty"` // without the description
	Store       string             `json:"store,omitempty"`   // the store's identity: see marker.identity
	Updated     int64              `json:"updated"`           // Unix milliseconds, by the clock of the writer
	Late        int                `json:"late,omitempty"`    // see the package documentation, Fairness
}

func newTagText(t segment.Tag) tagText {
	return tagText{MaxID: t.MaxID, Step: t.Step, Description: t.Options.Description(), Options: t.Options.Others()}
}

func (t tagText) tag(name string) segment.Tag {
	tag := segment.Tag{Name: name, MaxID: t.MaxID, Step: t.Step, Options: t.Options.With(segment.Describe(t.Description))}
	if t.Updated > 0 {
		tag.Updated = time.UnixMilli(t.Updated)
	}
	return tag
}

// text returns t as it is written now.
func (t tagText) text() string { return t.textAt(time.Now().UnixMilli()) }

// later is text with a time above its own and above the time.
func (t tagText) later() string { return t.textAt(max(time.Now().UnixMilli(), t.Updated) + 1) }

func (t tagText) textAt(updated int64) string {
	t.Version, t.Updated = format, updated
	switch {
	case t.Options.Masked():
		t.Version = maskFormat
	case t.Options.Periodic():
		t.Version = periodFormat
	case len(t.Options) > 0:
		t.Version = optionFormat
	}
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // numbers and strings always have a text
	}
	return string(text)
}

// optionFormat is the version of a cell with options. Older releases refuse the cell: they would drop
// the options with the next write.
const optionFormat = format + 1

// periodFormat is the version of a cell of a tag with periods. Releases with other options refuse it:
// they would serve the tag's own counter.
const periodFormat = format + 2

// maskFormat is the version of a cell of a tag with a mask. Releases without masks refuse it: they
// would show the plain numbers.
const maskFormat = format + 3

// readTag parses the result of text. For a cell without a tag its error wraps [leaf.ErrUnknownTag];
// a deleted tag still has its counter. For a cell without a counter the error wraps
// [segment.ErrDamaged].
func readTag(c Cell) (tagText, error) {
	if c.Version == "" {
		return tagText{}, leaf.ErrUnknownTag
	}
	var t tagText
	err := json.Unmarshal([]byte(c.Value), &t)
	switch {
	case err == nil && t.Version > maskFormat:
		return tagText{}, fmt.Errorf("%w: %s has format %d, written by a newer release", leaf.ErrUnsupported, c.Key, t.Version)
	case err == nil && t.Version >= format && t.Deleted:
		return tagText{Deleted: true, MaxID: max(t.MaxID, 0)}, leaf.ErrUnknownTag
	case err != nil || t.Version < format || t.MaxID < 0 || t.Step < 1 || t.Step > segment.MaxStep:
		return tagText{}, damaged(c)
	}
	return t, nil
}

func damaged(c Cell) error {
	return fmt.Errorf(`%w: %s holds %.100q, which is not a counter such as {"v":%d,"max_id":N,"step":1000}`, segment.ErrDamaged, c.Key, c.Value, format)
}

// checkOrder reports why a call must not move the counter.
func (t *tagText) checkOrder(c *call) error {
	if c.strict {
		return t.Options.CheckStrict(c.lossy, c.masked)
	}
	return t.Options.Stockless()
}

// advance moves the counter, or changes nothing and returns an error.
func (t *tagText) advance(n int64) (segment.Grant, error) {
	if n == 0 {
		n = t.Step
	}
	if n > math.MaxInt64-t.MaxID {
		return segment.Grant{}, fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, n, t.MaxID)
	}
	grant := segment.Grant{Range: leaf.Range{Start: t.MaxID, End: t.MaxID + n}, Step: t.Step}
	t.MaxID += n
	return grant, nil
}

// alter applies a change, or returns an error without changing anything. Damage is the fault of the
// counter: the counter may have been above the new value.
func (t *tagText) alter(change segment.Change, damage error) error {
	if damage != nil && !(errors.Is(damage, segment.ErrDamaged) && change.Force && change.MaxID != nil && change.Step != nil) {
		return damage
	}
	tag, err := change.Apply(t.tag(""))
	if err == nil {
		identity := t.Store
		*t = newTagText(tag)
		t.Store = identity
	}
	return err
}
