package segment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leaf-id/leaf"
)

// TagOptions are the settings of a tag besides its counter and its step, by name. Stores, servers
// and clients pass them on as a whole and know no names, so they also keep the options of newer
// releases. [KnownOptions] lists those of this one. An absent option has its default.
type TagOptions map[string]string

// An Option is one that tags can have.
type Option struct {
	Name  string // also the name of the command's flag
	Usage string // one line for users

	// Check reports, wrapping [leaf.ErrInvalid], why the option cannot have a value; nil accepts
	// each. The value is not empty.
	Check func(value string) error

	// Fixed: a tag gets the option when it is created, and never another value.
	Fixed bool
}

// OptionDescription tells people the purpose of a tag. Java Leaf's table has a column for it.
const OptionDescription = "description"

// OptionOrder makes the IDs of a tag increase over all servers.
const OptionOrder = "order"

// Options of a tag whose numbers start again with each period.
const (
	OptionPeriod = "period" // day, week, month, year or fiscal:MM-DD
	OptionZone   = "zone"   // where the days begin; default UTC
)

// OptionForm is the template of the texts of the tag's numbers, as package textid has it.
const OptionForm = "form"

// optionTable has a row for each option.
var optionTable = []Option{
	{Name: OptionDescription, Usage: "what the tag is for"},
	{Name: OptionOrder, Usage: "strict: IDs increase over all servers, and each call waits for the store", Check: checkOrder, Fixed: true},
	{Name: OptionPeriod, Usage: "day, week, month, year or fiscal:MM-DD: numbers start again with each one", Check: checkPeriod, Fixed: true},
	{Name: OptionZone, Usage: "time zone of the periods, such as Europe/Berlin (default UTC)", Check: checkZone, Fixed: true},
	{Name: OptionMask, Usage: "KEY:DOMAIN, such as k1:10^9: the numbers hide how many there were", Check: checkMask, Fixed: true},
	{Name: OptionForm, Usage: "how to write a number as text, such as INV-{n:6}{check:luhn}", Check: checkForm},
}

// KnownOptions returns all options of this release.
func KnownOptions() []Option { return slices.Clone(optionTable) }

// findOption returns the row of an option; it is zero for those of other releases.
func findOption(name string) (o Option, known bool) {
	i := slices.IndexFunc(optionTable, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return optionTable[i], true
}

// Describe returns options with a description and nothing else.
func Describe(text string) TagOptions {
	if text == "" {
		return nil
	}
	return TagOptions{OptionDescription: text}
}

// Description returns the value of [OptionDescription].
func (o TagOptions) Description() string { return o[OptionDescription] }

// Others returns the options without the description, for a store with a place of its own for that;
// nil without any.
func (o TagOptions) Others() TagOptions { return o.With(TagOptions{OptionDescription: ""}) }

// With returns o with the values of change, and leaves o as it is. An empty value removes an option.
// The result is nil without any option.
func (o TagOptions) With(change TagOptions) TagOptions {
	if len(o)+len(change) == 0 {
		return nil
	}
	all := make(TagOptions, len(o)+len(change))
	maps.Copy(all, o)
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	if len(all) == 0 {
		return nil
	}
	return all
}

// Limits of an option. Java Leaf's table sets that of a value.
const (
	maxOptionName  = 32  // bytes
	MaxOptionValue = 256 // characters
)

// Check reports, wrapping [leaf.ErrInvalid], why no tag can have these options. It accepts those of
// newer releases, see [TagOptions.CheckKnown].
func (o TagOptions) Check() error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		switch value := o[name]; {
		case name == "" || len(name) > maxOptionName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "":
			return fmt.Errorf("%w: the name %.40q of an option is not 1 … %d small letters and underscores", leaf.ErrInvalid, name, maxOptionName)
		case !utf8.ValidString(value):
			return fmt.Errorf("%w: the %s is not valid UTF-8", leaf.ErrInvalid, name)
		case utf8.RuneCountInString(value) > MaxOptionValue:
			return fmt.Errorf("%w: the %s is longer than %d characters", leaf.ErrInvalid, name, MaxOptionValue)
		case value != "":
			if known, _ := findOption(name); known.Check != nil {
				if err := known.Check(value); err != nil {
					return fmt.Errorf("the %s: %w", name, err)
				}
			}
		}
	}
	return cmp.Or(o.checkPeriods(), o.checkMasked())
}

// CheckKnown reports, wrapping [leaf.ErrUnsupported], an option that this release does not have.
func (o TagOptions) CheckKnown() error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if _, known := findOption(name); !known {
			return fmt.Errorf("%w: this release has no option %q for tags", leaf.ErrUnsupported, name)
		}
	}
	return nil
}

// checkChange reports, wrapping [leaf.ErrInvalid], an option that no change may set.
func (o TagOptions) checkChange() error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if known, _ := findOption(name); known.Fixed {
			return fmt.Errorf("%w: the %s of a tag never changes: create another tag with it", leaf.ErrInvalid, name)
		}
	}
	return o.Check()
}
