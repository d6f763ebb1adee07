package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

// Layouts are layouts of time-based IDs, by the names that their IDs go by.
type Layouts map[string]Layout

// A Layout is a preset of package snowflake, or a layout with values of its own.
type Layout struct {
	Preset      string        `yaml:"preset"` // without this all others but Tick and RandomStart are required
	Epoch       time.Time     `yaml:"epoch"`
	Tick        time.Duration `yaml:"tick"` // 1ms, 10ms or 1s; default 1ms
	Time        int           `yaml:"time"` // bits
	Worker      int           `yaml:"worker"`
	Sequence    int           `yaml:"sequence"`
	RandomStart int64         `yaml:"random_start"` // how many sequence numbers an idle tick may begin at; 0: all
}

const missing = -1

func newLayout() Layout { return Layout{Time: missing, Worker: missing, Sequence: missing} }

// maxLayouts is how many layouts fit in the record of a worker ID and its state file.
const maxLayouts = 16

var layoutName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)
})

// resolve returns l as a layout of package snowflake, or its fault.
func (l Layout) resolve() (snowflake.Layout, error) {
	if l.Preset != "" {
		return l.resolvePreset()
	}
	own := snowflake.Layout{Epoch: l.Epoch, Tick: cmp.Or(l.Tick, time.Millisecond), TimeBits: l.Time, WorkerBits: l.Worker, SequenceBits: l.Sequence}
	switch {
	case l.Epoch.IsZero():
		return own, errors.New("the epoch is missing: write the time that ticks are counted from, such as 2026-01-01T00:00:00Z")
	case min(l.Time, l.Worker, l.Sequence) == missing:
		return own, errors.New("time, worker and sequence are the numbers of bits, and one is missing: 0 is a number too")
	case !slices.Contains([]time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}, own.Tick):
		return own, fmt.Errorf("a tick of %v is not one of 1ms, 10ms, 1s", own.Tick)
	}
	if err := own.Check(); err != nil {
		return own, errors.New(plain(err))
	}
	if l.RandomStart < 0 || l.RandomStart > own.MaxSequence()+1 {
		return own, fmt.Errorf("random_start %d is not in 0 … %d", l.RandomStart, own.MaxSequence()+1)
	}
	return own, nil
}

func (l Layout) resolvePreset() (snowflake.Layout, error) {
	preset, ok := snowflake.Preset(l.Preset)
	if !ok {
		return preset, errors.New(oneOf(l.Preset, snowflake.PresetNames()))
	}
	if !l.Epoch.IsZero() || l.Tick != 0 || max(l.Time, l.Worker, l.Sequence) > 0 {
		return preset, errors.New("preset goes with random_start only")
	}
	return preset, nil
}

// plain is the fault of a layout.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), "layout: "+leaf.ErrInvalid.Error()+": ")
}

// Served returns the served layouts, the default one first and the others by name. s must be valid.
func (s Snowflake) Served() issuer.Layouts {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Layouts)), func(n string) bool { return n == s.Layout })
	var served issuer.Layouts
	for _, name := range slices.Insert(names, 0, s.Layout) {
		l, ok := s.Layouts[name]
		if !ok {
			l = Layout{Preset: name}
		}
		if layout, err := l.resolve(); err == nil {
			served = append(served, issuer.NamedLayout{Name: name, Layout: layout, RandomStart: l.RandomStart})
		}
	}
	return served
}

func (c Config) served() (all issuer.Layouts) {
	if c.Snowflake.Enable {
		all = c.Snowflake.Served()
	}
	if c.ServesUID() {
		all = append(all, c.UID.Served()...)
	}
	return all
}

// ending says that a layout runs out within a year, "" if it does not.
func ending(l issuer.NamedLayout, now time.Time) string {
	if !l.Last().Before(now.AddDate(1, 0, 0)) {
		return ""
	}
	return fmt.Sprintf("the %s layout %s runs out on %s: after that it issues no ID", cmp.Or(l.Scheme, issuer.Snowflake), l.Name, day(l.Last()))
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
