package issuer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/snowflake"
)

// DefaultLayout is the layout without a name: Java Leaf's.
const DefaultLayout = "leaf"

// A NamedLayout is a layout and the name that its IDs go by.
type NamedLayout struct {
	Name string
	snowflake.Layout

	// RandomStart is [snowflake.Options.RandomStart].
	RandomStart int64

	// Scheme is the scheme that it is served by; empty: [Snowflake].
	Scheme string
}

// Layouts are the layouts that a server serves, the default one of each scheme before its
// others. The presets of package snowflake can be decoded as well; where a scheme has no
// layout, the default one is [DefaultLayout], of [UID] the preset of that name.
type Layouts []NamedLayout

// A Decoded has the fields of an ID in a layout.
type Decoded struct {
	Layout string
	Of     snowflake.Layout // the layout of that name
	snowflake.Parts
}

// Decode decodes id in the layout of that name; "" is the default layout of [Snowflake]. If the
// layout does not exist or has no such ID, the error wraps [leaf.ErrInvalid].
func (ls Layouts) Decode(name string, id int64) (Decoded, error) {
	l, err := ls.find(name)
	if err != nil {
		return Decoded{}, err
	}
	if l.Name == "uid-baidu" && id < 0 {
		return Decoded{l.Name, l.Layout, expired(l.Layout, id)}, nil
	}
	parts, err := l.Layout.Decode(id)
	return Decoded{l.Name, l.Layout, parts}, err
}

// expired takes apart what uid-generator issued after its layout had run out: the time
// went on into the sign bit.
func expired(l snowflake.Layout, id int64) snowflake.Parts {
	parts, _ := l.Decode(id & math.MaxInt64) // every such number is one of its IDs
	parts.Tick += 1 << l.TimeBits
	parts.Time = l.Start(parts.Tick)
	return parts
}

// Default returns the name of the default layout of a time-based scheme.
func (ls Layouts) Default(scheme string) string {
	for _, l := range ls {
		if (scheme == UID) == (l.Scheme == UID) {
			return l.Name
		}
	}
	if scheme == UID {
		return UID
	}
	return DefaultLayout
}

func (ls Layouts) find(name string) (NamedLayout, error) {
	if name == "" {
		name = ls.Default(Snowflake)
	}
	for _, l := range ls {
		if l.Name == name {
			return l, nil
		}
	}
	if preset, ok := snowflake.Preset(name); ok {
		return NamedLayout{Name: name, Layout: preset}, nil
	}
	return NamedLayout{}, fmt.Errorf("%w: there is no layout %q; there are: %s", leaf.ErrInvalid, name, strings.Join(ls.names(), ", "))
}

func (ls Layouts) names() []string {
	var names []string
	for _, l := range ls {
		names = append(names, l.Name)
	}
	for _, p := range snowflake.PresetNames() {
		if !slices.Contains(names, p) {
			names = append(names, p)
		}
	}
	return names
}
