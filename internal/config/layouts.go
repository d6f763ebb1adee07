package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

// Layouts are layouts of time-based IDs, by the names that their IDs go by.
type Layouts map[string]Layout

// A Layout is a preset of package snowflake, or the values of a layout of one's own.
type Layout struct {
	Preset string // its name; the values up to Sequence are zero

	Epoch                  time.Time
	Tick                   time.Duration // 1ms, 10ms or 1s
	Time, Worker, Sequence int           // bits

	// RandomStart is how many sequence numbers an idle tick may begin at; 0: all.
	RandomStart int64
}

// maxLayouts is how many layouts fit in the record of a worker ID and its state file.
const maxLayouts = 16

var layoutName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)

const badLayoutName = "the name of a layout is made of 1 to 32 letters, digits, dots, dashes and underscores"

// ticks are the values of tick.
var ticks = []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}

// resolve returns l as package snowflake has it. The error says what is wrong.
func (l Layout) resolve() (snowflake.Layout, error) {
	if l.Preset != "" {
		preset, ok := snowflake.Preset(l.Preset)
		if !ok {
			return preset, errors.New(noneOf(l.Preset, snowflake.PresetNames()))
		}
		return preset, nil
	}
	own := snowflake.Layout{Epoch: l.Epoch, Tick: l.Tick, TimeBits: l.Time, WorkerBits: l.Worker, SequenceBits: l.Sequence}
	switch {
	case l.Epoch.IsZero():
		return own, errors.New("the epoch is missing: write the time that ticks are counted from, such as 2026-01-01T00:00:00Z")
	case !slices.Contains(ticks, l.Tick):
		return own, fmt.Errorf("a tick of %v is none of 1ms, 10ms, 1s", l.Tick)
	}
	if err := own.Check(); err != nil {
		return own, errors.New(plain(err))
	}
	if l.RandomStart < 0 || l.RandomStart > own.MaxSequence()+1 {
		return own, fmt.Errorf("random_start %d is not in 0 … %d", l.RandomStart, own.MaxSequence()+1)
	}
	return own, nil
}

// plain is what is wrong with a layout.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), "layout: "+leaf.ErrInvalid.Error()+": ")
}

// Served returns the layouts that are served, the default one first and the others by
// name. s must be valid.
func (s Snowflake) Served() issuer.Layouts {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Layouts)), func(n string) bool { return n == s.Layout })
	var served issuer.Layouts
	for _, name := range slices.Insert(names, 0, s.Layout) {
		l, ok := s.Layouts[name]
		if !ok {
			l = Layout{Preset: name}
		}
		layout, err := l.resolve()
		if err == nil {
			served = append(served, issuer.NamedLayout{Name: name, Layout: layout, RandomStart: l.RandomStart})
		}
	}
	return served
}

// ending says which of layouts that are served run out within a year.
func ending(served issuer.Layouts, now time.Time) []string {
	var notices []string
	for _, l := range served {
		if l.Last().Before(now.AddDate(1, 0, 0)) {
			notices = append(notices, fmt.Sprintf("the %s layout %s runs out on %s: after that it issues no ID",
				cmp.Or(l.Scheme, issuer.Snowflake), l.Name, day(l.Last())))
		}
	}
	return notices
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

func (v *validator) layouts(s Snowflake, now time.Time) {
	const path = "snowflake.layouts"
	v.require(len(s.Layouts) < maxLayouts, path, fmt.Sprintf("%d layouts are more than %d", len(s.Layouts), maxLayouts-1))
	for _, name := range slices.Sorted(maps.Keys(s.Layouts)) {
		v.layout(path+"."+name, name, s.Layouts[name], now)
	}
	if _, ok := s.Layouts[s.Layout]; !ok {
		if preset, ok := snowflake.Preset(s.Layout); ok {
			v.lasts("snowflake.layout", preset, now)
		} else {
			v.require(false, "snowflake.layout", noneOf(s.Layout, append(snowflake.PresetNames(), slices.Sorted(maps.Keys(s.Layouts))...)))
		}
	}
	v.alike(s)
}

func (v *validator) layout(path, name string, l Layout, now time.Time) {
	v.require(layoutName.MatchString(name), path, badLayoutName)
	layout, err := l.resolve()
	if err != nil {
		v.require(false, path, err.Error())
		return
	}
	preset, builtIn := snowflake.Preset(name)
	v.require(!builtIn || preset.Record("") == layout.Record(""), path, "this is the name of a built-in layout with other values: choose another name")
	v.lasts(path, layout, now)
}

// lasts refuses a layout whose time is not the present.
func (v *validator) lasts(path string, l snowflake.Layout, now time.Time) {
	v.require(!l.First().After(now), path, fmt.Sprintf("the epoch is in the future, on %s", day(l.First())))
	v.require(l.Last().After(now), path, fmt.Sprintf("this layout ran out on %s", day(l.Last())))
}

// alike refuses layouts of equal values that are to start differently: they have one
// generator.
func (v *validator) alike(s Snowflake) {
	seen := map[any]issuer.NamedLayout{}
	for _, l := range s.Served() {
		first, ok := seen[l.Record("")]
		if !ok {
			seen[l.Record("")] = l
			continue
		}
		v.require(first.RandomStart == l.RandomStart, "snowflake.layouts."+l.Name,
			fmt.Sprintf("it has the values of %s, so that both get their IDs from one place: give both the same random_start", first.Name))
	}
}

// A layoutsReader reads layouts from YAML.
type layoutsReader struct {
	problem func(n *yaml.Node, path, text string)
}

// read reads name: preset, or name: {epoch: …, tick: …, …}.
func (r layoutsReader) read(path string, n *yaml.Node) Layouts {
	if n.Kind != yaml.MappingNode {
		r.problem(n, path, "this must be names with their layouts, one a line, such as js53: js53")
		return nil
	}
	if len(n.Content) == 0 {
		return nil
	}
	all := make(Layouts, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		if _, ok := all[name]; ok {
			r.problem(n.Content[i], path+"."+name, "this layout stands here already")
		}
		all[name] = r.layout(path+"."+name, value)
	}
	return all
}

func (r layoutsReader) layout(path string, n *yaml.Node) Layout {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	l := Layout{}
	switch n.Kind {
	case yaml.ScalarNode:
		l.Preset = n.Value
		return l
	case yaml.MappingNode:
	default:
		r.problem(n, path, "this must be the name of a built-in layout, or a list of keys with their values")
		return l
	}
	fields := map[string]any{
		"preset": &l.Preset, "epoch": &l.Epoch, "tick": &l.Tick,
		"time": &l.Time, "worker": &l.Worker, "sequence": &l.Sequence, "random_start": &l.RandomStart,
	}
	said, known := map[string]bool{}, 0
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		dst, ok := fields[name.Value]
		switch {
		case !ok:
			r.problem(name, path+"."+name.Value, unknownKey(name.Value, slices.Sorted(maps.Keys(fields))))
		case said[name.Value]:
			r.problem(name, path+"."+name.Value, "this key stands here already")
		case value.Kind != yaml.ScalarNode:
			r.problem(value, path+"."+name.Value, "this must be a single value")
		default:
			if err := (key{dst: dst}).set(value.Value); err != nil {
				r.problem(value, path+"."+name.Value, err.Error())
			} else {
				known++
			}
		}
		said[name.Value] = true
	}
	if l.Preset != "" && (len(said) > 2 || len(said) == 2 && !said["random_start"]) {
		r.problem(n, path, "beside preset there can only be random_start")
	}
	if l.Preset == "" && !said["tick"] {
		l.Tick = time.Millisecond
	}
	if l.Preset == "" && len(said) == known {
		r.required(n, path, said)
	}
	return l
}

// required notes which bits nobody said a number of.
func (r layoutsReader) required(n *yaml.Node, path string, said map[string]bool) {
	for _, name := range []string{"time", "worker", "sequence"} {
		if !said[name] {
			r.problem(n, path, name+" is missing: a layout of your own has time, worker and sequence bits; 0 is a number too")
			return
		}
	}
}

// parseLayouts reads layouts from the text of a variable: YAML on one line.
func parseLayouts(text string) (Layouts, error) {
	n, err := parseNode([]byte(text))
	if err != nil || n == nil {
		return nil, fmt.Errorf("%q is no list such as {game: js53, shop: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 10, sequence: 12}}", text)
	}
	var problems []error
	all := layoutsReader{func(_ *yaml.Node, path, text string) {
		if path = strings.TrimPrefix(path, "."); path != "" {
			text = path + ": " + text
		}
		problems = append(problems, errors.New(text))
	}}.read("", n)
	return all, errors.Join(problems...)
}
