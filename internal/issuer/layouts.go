package issuer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/snowflake"
)

// DefaultLayout is the layout of those who name none: Java Leaf's.
const DefaultLayout = "leaf"

// A NamedLayout is a layout and the name that its IDs go by.
type NamedLayout struct {
	Name string
	snowflake.Layout

	// RandomStart is [snowflake.Options.RandomStart].
	RandomStart int64
}

// Layouts are the layouts that a server serves, the default one first. The presets of
// package snowflake can be decoded as well; without any layout, [DefaultLayout] is
// the default one.
type Layouts []NamedLayout

// A Decoded is what an ID says in a layout.
type Decoded struct {
	Layout string
	snowflake.Parts
}

// Decode takes id apart in the layout of that name; an empty one is the default
// layout. The error wraps [leaf.ErrInvalid]: there is no such layout, or it has no
// such ID.
func (ls Layouts) Decode(name string, id int64) (Decoded, error) {
	l, err := ls.find(name)
	if err != nil {
		return Decoded{}, err
	}
	parts, err := l.Layout.Decode(id)
	return Decoded{l.Name, parts}, err
}

func (ls Layouts) find(name string) (NamedLayout, error) {
	if name == "" && len(ls) > 0 {
		return ls[0], nil
	}
	if name == "" {
		name = DefaultLayout
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
