package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-id/leaf/snowflake"
)

// Validate reports every value that no server could work with.
func (c Config) Validate() Problems {
	v := validator{now: time.Now()}
	for _, s := range settings(&c) {
		v.add(s.path, s.check())
	}
	v.access(c)
	v.require(c.Segment.Enable || c.Snowflake.Enable || c.ServesUID(), "segment.enable",
		"nothing is left to serve: segment, snowflake and uid are all off")
	if c.Snowflake.Enable {
		v.layouts(c.Snowflake)
	}
	if c.ServesUID() {
		v.uid(c)
	}
	return v.problems
}

type validator struct {
	now      time.Time
	problems Problems
}

// add records a key's fault, unless text is empty.
func (v *validator) add(key, text string) {
	if text != "" {
		v.problems = append(v.problems, Problem{Key: key, Text: text})
	}
}

func (v *validator) require(ok bool, key, text string) {
	if !ok {
		v.add(key, text)
	}
}

func (v *validator) access(c Config) {
	v.require((c.TLS.Cert == "") == (c.TLS.Key == ""), "tls.cert", "tls.cert and tls.key go together: one is empty")
	v.require(c.TLS.ClientCA == "" || c.TLS.Cert != "", "tls.client_ca", "there is no TLS without tls.cert and tls.key")
	v.add("limits.client", c.Limits.Client.Check())
	for pattern, limit := range c.Limits.Tags {
		v.add("limits.tags."+pattern, limit.Check())
	}
}

func (v *validator) layouts(s Snowflake) {
	const path = "snowflake.layouts"
	names := slices.Sorted(maps.Keys(s.Layouts))
	v.require(len(names) < maxLayouts, path, fmt.Sprintf("%d layouts are more than %d", len(names), maxLayouts-1))
	for _, name := range names {
		layout, err := s.Layouts[name].resolve()
		if err != nil {
			v.add(path+"."+name, err.Error())
			continue
		}
		v.layout(path+"."+name, name, layout)
		v.lasts(path+"."+name, layout)
	}
	if !slices.Contains(names, s.Layout) {
		v.add("snowflake.layout", oneOf(s.Layout, append(snowflake.PresetNames(), names...)))
		if preset, ok := snowflake.Preset(s.Layout); ok {
			v.lasts("snowflake.layout", preset)
		}
	}
	v.sameStart(s)
}

func (v *validator) layout(path, name string, l snowflake.Layout) {
	v.require(layoutName().MatchString(name), path, "the name of a layout is made of 1 to 32 letters, digits, dots, dashes and underscores")
	preset, builtIn := snowflake.Preset(name)
	v.require(!builtIn || preset.Record("") == l.Record(""), path, name+" is the name of a built-in layout with other values: choose another name, "+
		"which must stand for these values from then on")
}

// lasts refuses a layout whose time is not the present.
func (v *validator) lasts(path string, l snowflake.Layout) {
	v.require(!l.First().After(v.now), path, fmt.Sprintf("the epoch is in the future, on %s", day(l.First())))
	v.require(l.Last().After(v.now), path, fmt.Sprintf("this layout ran out on %s", day(l.Last())))
}

// sameStart refuses layouts with the same values and different random starts: they share
// one generator.
func (v *validator) sameStart(s Snowflake) {
	seen := map[any]int{}
	served := s.Served()
	for i, l := range served {
		j, ok := seen[l.Record("")]
		if !ok {
			seen[l.Record("")] = i
			continue
		}
		v.require(served[j].RandomStart == l.RandomStart, "snowflake.layouts."+l.Name,
			fmt.Sprintf("it has the values of %s, so both get their IDs from one generator: give both the same random_start", served[j].Name))
	}
}

func (v *validator) uid(c Config) {
	u := c.UID
	l := u.layout()
	if err := l.Check(); err != nil {
		v.add("uid.time_bits", plain(err))
		return
	}
	v.require(u.Epoch.Nanosecond() == 0, "uid.epoch", "the epoch is not a whole second")
	v.require(u.TimeBits+u.WorkerBits+u.SeqBits == 63, "uid.time_bits",
		fmt.Sprintf("time_bits, worker_bits and seq_bits are %d together, not 63", u.TimeBits+u.WorkerBits+u.SeqBits))
	v.layout("uid.layout", u.Layout, l)
	v.lasts("uid.time_bits", l)
	v.require(u.Enable != EnableTrue || c.UIDConflict() == "", "uid.enable", c.UIDConflict())
}
