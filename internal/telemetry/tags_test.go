package telemetry

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/segment"
)

// A store of figures replaces the tags of a server.
type figures map[string]*segment.Stats

func (f figures) all() iter.Seq[segment.Stats] {
	return func(yield func(segment.Stats) bool) {
		for _, s := range f {
			if !yield(*s) {
				return
			}
		}
	}
}

// issue has tags issue n IDs each.
func (f figures) issue(n int64, tags ...string) {
	for _, tag := range tags {
		if f[tag] == nil {
			f[tag] = &segment.Stats{Tag: tag, Loaded: true}
		}
		f[tag].Issued += n
		f[tag].Calls++
	}
}

// names returns so many names of tags.
func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%04d", prefix, i))
	}
	return all
}

// read scrapes c and returns the values by name and tag.
func read(t *testing.T, c *Collector) map[[2]string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[[2]string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			tag := ""
			for _, l := range m.Label {
				if l.GetName() == "tag" {
					tag = l.GetValue()
				}
			}
			values[[2]string{f.GetName(), tag}] = m.Counter.GetValue() + m.Gauge.GetValue()
		}
	}
	return values
}

// shown returns the tags with series.
func shown(values map[[2]string]float64) []string {
	tags := make(map[string]bool)
	for of := range maps.Keys(values) {
		if of[1] != "" {
			tags[of[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(tags))
}

func newTagCollector(f figures) *Collector {
	return NewCollector(Sources{Health: func() health.Report { return health.Report{} }, Tags: f.all(), StoreErr: func() error { return nil }, StoreCalls: NewStoreCalls()})
}

func TestMostActiveTagsHaveSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := figures{}
		c := newTagCollector(f)
		first, rest := names("a", MaxTags), names("b", 5000)
		f.issue(100, first...)
		wantShown := func(what string, want []string) {
			t.Helper()
			if got := shown(read(t, c)); !slices.Equal(got, want) {
				t.Errorf("%s: %d tags, want %d, the last one %s, want %s", what, len(got), len(want), got[len(got)-1], want[len(want)-1])
			}
		}
		wantShown("as many as may be", first)
		f.issue(1_000_000, rest...)
		wantShown("more tags", first)
		time.Sleep(rankInterval)
		wantShown("a minute later", rest[:MaxTags])
		f.issue(1_000, rest[:MaxTags]...)
		f.issue(1_900, rest[MaxTags:]...)
		time.Sleep(rankInterval)
		wantShown("others are a little more active", rest[:MaxTags])
		time.Sleep(rankInterval)
		f.issue(10_000_000, first[7])
		time.Sleep(rankInterval)
		wantShown("one is much more active", append([]string{first[7]}, rest[:MaxTags-1]...))
	})
}

// What callers ask for and the store does not have gets no series, however often they ask.
func TestUnknownTagsHaveNoSeries(t *testing.T) {
	f := figures{}
	f.issue(1, "known")
	for _, tag := range names("unknown", 1000) {
		f[tag] = &segment.Stats{Tag: tag, Exhausted: 1000, Waits: 1}
	}
	values := read(t, newTagCollector(f))
	if got := shown(values); !slices.Equal(got, []string{"known"}) {
		t.Errorf("%d tags have series", len(got))
	}
	for name, want := range map[string]float64{"leaf_segment_tags": 1, "leaf_segment_exhausted_total": 1_000_000, "leaf_segment_waits_total": 1000} {
		if got := values[[2]string{name}]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// The sums never fall: not when the server forgets a tag, nor when a tag starts over.
func TestSumsNeverFall(t *testing.T) {
	f := figures{}
	c := newTagCollector(f)
	issued := func() float64 { return read(t, c)[[2]string{"leaf_segment_ids_issued_total"}] }
	f.issue(100, names("a", 700)...)
	for what, change := range map[string]func(){
		"the same":   func() {},
		"dropped":    func() { delete(f, "a0001"); delete(f, "a0650") },
		"used again": func() { f.issue(0, "a0001") },
		"begun anew": func() { f["a0002"] = &segment.Stats{Tag: "a0002", Issued: 0, Calls: 0} },
	} {
		if before, after := issued(), func() float64 { change(); return issued() }(); before != 70_000 || after != 70_000 {
			t.Errorf("%s: from %v to %v, want 70000", what, before, after)
		}
	}
	f.issue(5, "a0002")
	if got := issued(); got != 70_005 {
		t.Errorf("%v", got)
	}
}

// Any name that a tag may have is a label.
func TestNamesOfTags(t *testing.T) {
	f := figures{}
	odd := []string{`a"b\c`, "日本語", "a{b=\"c\"} 1", strings.Repeat("é", segment.MaxTagLength)}
	for _, tag := range odd {
		if err := segment.CheckTagName(tag); err != nil {
			t.Error(err)
		}
	}
	f.issue(1, odd...)
	if got := shown(read(t, newTagCollector(f))); !slices.Equal(got, slices.Sorted(slices.Values(odd))) {
		t.Errorf("%q", got)
	}
}

// Returned IDs lower the figures of a tag. That is no new tag, whose figures would add to the old
// ones.
func TestGivenBackIsNoNewTag(t *testing.T) {
	f := figures{}
	c := newTagCollector(f)
	f.issue(1000, "a")
	f["a"].Exhausted, f["a"].Regressions = 3, 1
	for _, step := range []struct{ issued, want float64 }{{1000, 1000}, {400, 1000}, {900, 1000}, {1100, 1100}} {
		f["a"].Issued = int64(step.issued)
		values := read(t, c)
		for _, of := range [][2]string{{"leaf_segment_ids_issued_total"}, {"leaf_tag_ids_issued_total", "a"}} {
			if got := values[of]; got != step.want {
				t.Errorf("%v: %v after %v, want %v", of, got, step.issued, step.want)
			}
		}
		if n := values[[2]string{"leaf_segment_exhausted_total"}] + values[[2]string{"leaf_segment_regressions_total"}]; n != 4 {
			t.Errorf("the other sums are %v, want 4", n)
		}
	}
}

// If a tag starts over and then issues more, the other sums do not fall either.
func TestBegunAnewAndBusier(t *testing.T) {
	f := figures{"a": {Tag: "a", Loaded: true, Issued: 10, Calls: 1, Waits: 7, Exhausted: 5}}
	c := newTagCollector(f)
	read(t, c)
	f["a"] = &segment.Stats{Tag: "a", Loaded: true, Issued: 500, Calls: 2, Waits: 1}
	values := read(t, c)
	for name, want := range map[string]float64{"leaf_segment_ids_issued_total": 510, "leaf_segment_waits_total": 8, "leaf_segment_exhausted_total": 5} {
		if got := values[[2]string{name}]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
