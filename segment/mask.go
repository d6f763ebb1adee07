package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/mask"
)

// OptionMask hides the numbers of a tag: KEY:DOMAIN:FINGERPRINT, with the name of the key and what
// tells it apart from others. Whoever creates the tag may leave out the fingerprint, see
// [MaskKeys.Complete].
const OptionMask = "mask"

// ErrMasked refuses a call that does not ask for hidden numbers, for a tag with a mask. It also wraps
// [ErrStrict]: such a tag has no stock.
var ErrMasked error = maskedError{}

// ErrMaskKey is wrapped where a process lacks the key of a tag's mask. No number is spent then.
var ErrMaskKey = errors.New("the key of the mask is missing")

// A maskedError is [ErrMasked] with the option of the tag, unless it comes from a server.
type maskedError struct{ mask string }

func (maskedError) Error() string {
	return "the numbers of the tag are hidden: they come one call at a time"
}
func (maskedError) Is(target error) bool { return target == ErrStrict || target == ErrMasked }

// A MaskedStore is a [StrictStore] that can have tags with a mask. Its Advance and its AdvanceStrict
// refuse them with [ErrMasked]: a caller without knowledge of masks would issue the plain numbers.
type MaskedStore interface {
	// AdvanceMasked is AdvanceStrict for a tag with a mask. Without one it wraps
	// [leaf.ErrUnknownTag]. The caller hides the numbers of the grant, or the grant has hidden ones:
	// fewer than n at the end of the mask.
	AdvanceMasked(ctx context.Context, tag string, n int64) (Grant, error)
}

// Masked reports whether the numbers of the tag are hidden.
func (o TagOptions) Masked() bool { return o[OptionMask] != "" }

var maskValue = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]{0,31}):([^:]*)(?::([0-9a-f]{12}))?$`)

// CheckMaskKeyName reports, wrapping [leaf.ErrInvalid], why a key cannot have a name.
func CheckMaskKeyName(name string) error {
	if maskValue.MatchString(name+":53") && !strings.Contains(name, ":") {
		return nil
	}
	return fmt.Errorf("%w: %.40q is no name of a key: 1 … 32 letters, digits, dots, dashes and underscores", leaf.ErrInvalid, name)
}

func parseMask(value string) (key string, d mask.Domain, fingerprint string, err error) {
	parts := maskValue.FindStringSubmatch(value)
	if parts == nil {
		return "", d, "", fmt.Errorf("%w: %.60q is not KEY:DOMAIN, such as k1:10^9", leaf.ErrInvalid, value)
	}
	d, err = mask.ParseDomain(parts[2])
	return parts[1], d, parts[3], err
}

func checkMask(value string) error {
	_, _, _, err := parseMask(value)
	return err
}

// checkMasked reports options that do not go with a mask.
func (o TagOptions) checkMasked() error {
	if o.Masked() && (o.Strict() || o.Periodic()) {
		return fmt.Errorf("%w: a tag with a mask has no order and no period: hidden numbers follow no order, and each period would repeat them", leaf.ErrInvalid)
	}
	return nil
}

// CheckNewName reports, wrapping [leaf.ErrInvalid], why no tag with these options can have the name
// of a deleted tag that leaves its counter at maxID.
func (o TagOptions) CheckNewName(maxID int64) error {
	switch {
	case o.Masked():
		return fmt.Errorf("%w: there was a tag of this name, and a mask could repeat its numbers: choose another name", leaf.ErrInvalid)
	case maxID == math.MaxInt64:
		return fmt.Errorf("%w: a deleted tag of this name leaves no number: choose another name", leaf.ErrInvalid)
	}
	return nil
}

// CheckCounter reports, wrapping [leaf.ErrInvalid], a counter at maxID that leaves no number of the
// domain of the mask.
func (o TagOptions) CheckCounter(maxID int64) error {
	_, d, _, err := parseMask(o[OptionMask])
	if err == nil && maxID > d.Max() {
		return fmt.Errorf("%w: a counter at %d leaves no number of the mask, whose last one is %d", leaf.ErrInvalid, maxID, d.Max())
	}
	return nil
}

// Used returns where a tag of the same name may begin after the deletion of this one with its counter
// at maxID: above the domain of a mask.
func (o TagOptions) Used(maxID int64) int64 {
	if !o.Masked() {
		return maxID
	}
	_, d, _, err := parseMask(o[OptionMask])
	if err != nil || d.Max() == math.MaxInt64 {
		return math.MaxInt64
	}
	return max(maxID, d.Max()+1)
}

// MaskKeys are keys of masks, by name.
type MaskKeys map[string]mask.Key

// Complete returns the options of a new tag with the fingerprint of the key of its mask. It wraps
// [ErrMaskKey] where the fingerprint is unknown, or that of another key.
func (k MaskKeys) Complete(o TagOptions) (TagOptions, error) {
	if !o.Masked() {
		return o, nil
	}
	name, d, fingerprint, err := parseMask(o[OptionMask])
	if err != nil {
		return nil, fmt.Errorf("the %s: %w", OptionMask, err)
	}
	key, known := k[name]
	if fingerprint != "" && !known {
		return o, nil
	}
	if fingerprint == "" && known {
		fingerprint = key.Fingerprint()
	}
	if err := k.check(name, fingerprint); err != nil {
		return nil, err
	}
	return o.With(TagOptions{OptionMask: name + ":" + d.String() + ":" + fingerprint}), nil
}

func (k MaskKeys) check(name, fingerprint string) error {
	key, known := k[name]
	switch {
	case !known:
		return fmt.Errorf("%w: there is no key %s", ErrMaskKey, name)
	case key.Fingerprint() != fingerprint:
		return fmt.Errorf("%w: the key %s has the fingerprint %s, and the tag needs the one with %s", ErrMaskKey, name, key.Fingerprint(), fingerprint)
	}
	return nil
}

// open returns the mask of a tag with that option.
func (k MaskKeys) open(tag, option string) (*mask.Mask, error) {
	name, d, fingerprint, err := parseMask(option)
	if err != nil { // of a newer release
		return nil, fmt.Errorf("%w: this release does not know the mask of the tag", leaf.ErrUnsupported)
	}
	if err := k.check(name, fingerprint); err != nil {
		return nil, err
	}
	return mask.New(k[name], d, tag)
}

// Len returns how many IDs the grant has.
func (g Grant) Len() int64 { return g.Range.Len() + int64(len(g.Masked)) }

// AppendTo appends the IDs of the grant to dst; hidden ones are ranges of one number.
func (g Grant) AppendTo(dst []leaf.Range) []leaf.Range {
	if !g.Range.Empty() {
		dst = append(dst, g.Range)
	}
	for _, n := range g.Masked {
		dst = append(dst, leaf.Range{Start: n, End: n + 1})
	}
	return dst
}

// masks reports whether the numbers of the queue are hidden, and hides whether this process does it.
func (q *strictQueue) masks() bool { return q.refusal == ErrMasked }
func (q *strictQueue) hides() bool { return q.mask != nil }

// usedUp is the error of a call for more numbers than the mask has left.
func (q *strictQueue) usedUp() error {
	return fmt.Errorf("tag %q: %w: the mask has no number left", q.buffer.tag, leaf.ErrOverflow)
}

// within returns the part of a grant that the mask can hide.
func (q *strictQueue) within(g Grant) Grant {
	if q.hides() {
		g.Range.End = min(g.Range.End, q.end)
		g.Range.Start = min(g.Range.Start, g.Range.End)
	}
	return g
}

// checkMasked reports why a call to the store for n IDs must not be answered with a grant of hidden
// numbers. At the end of the mask a grant has fewer.
func (g Grant) checkMasked(n int64) error {
	if !g.Range.Empty() || len(g.Masked) == 0 || int64(len(g.Masked)) > n {
		return fmt.Errorf("the server granted %d hidden numbers when asked for %d", len(g.Masked), n)
	}
	for _, hidden := range g.Masked {
		if hidden < 0 || hidden == math.MaxInt64 {
			return errors.New("the server granted a hidden number that is none")
		}
	}
	return nil
}

// hide replaces the numbers of a grant by their hidden ones. Its errors do not show them.
func (q *strictQueue) hide(g Grant) (Grant, error) {
	if !q.hides() {
		return g, nil
	}
	for n := g.Range.Start; n < g.Range.End; n++ {
		hidden, err := q.mask.Hide(n)
		if err != nil || hidden == math.MaxInt64 { // which no range can have
			return Grant{}, q.usedUp()
		}
		g.Masked = append(g.Masked, hidden)
	}
	g.Range = leaf.Range{}
	return g, nil
}
