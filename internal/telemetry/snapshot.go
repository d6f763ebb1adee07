package telemetry

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// A Snapshot has the figures of one moment, by the names that they have for Prometheus.
type Snapshot struct {
	Time   time.Time
	Values map[string]map[string]float64 // by metric, then by the values of its labels, with | between them
	Tags   []segment.Stats               // of the selected tags, the busiest first; named ones with their segments

	// Latencies are the numbers of requests by duration, with the last bucket open; see
	// [LatencyBounds].
	Latencies map[string]map[string][]uint64
}

// LatencyBounds returns the upper ends of the buckets of latencies, except the last one's.
func LatencyBounds() []time.Duration { return slices.Clone(bounds[:]) }

// Snapshot reads all figures, those of the busiest tags, and those of the named tags in use. The
// figures are those of a scrape at the same moment, except that a scrape chooses other tags.
func (c *Collector) Snapshot(busiest int, named []string) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Snapshot{Time: time.Now(), Values: make(map[string]map[string]float64), Latencies: make(map[string]map[string][]uint64)}
	c.collect(sink{s}, func(time.Time) iter.Seq[*segment.Stats] {
		chosen := c.tags.choose(busiest, named)
		for _, t := range chosen {
			tag := *t
			if slices.Contains(named, t.Tag) {
				now, _ := c.Tag(t.Tag)
				tag.Segments = now.Segments
			}
			s.Tags = append(s.Tags, tag)
		}
		return slices.Values(chosen)
	})
	return s
}

// choose returns the busiest tags and the named ones, the busiest first.
func (t *tags) choose(busiest int, named []string) []*segment.Stats {
	order := func(a, b *segment.Stats) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Tag, b.Tag))
	}
	var chosen, rest []*segment.Stats
	for _, h := range t.known {
		if slices.Contains(named, h.last.Tag) {
			chosen = append(chosen, &h.last)
			continue
		}
		if rest = append(rest, &h.last); len(rest) > 2*busiest+2 {
			slices.SortFunc(rest, order)
			rest = rest[:busiest]
		}
	}
	slices.SortFunc(rest, order)
	chosen = append(chosen, rest[:min(busiest, len(rest))]...)
	slices.SortFunc(chosen, order)
	return chosen
}

// value implements receiver. JSON has no infinity: such a figure is left out.
func (s *Snapshot) value(m metric, value float64, labels []string) {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return
	}
	into(s.Values, m.name, labels, value)
}

// latencies implements receiver.
func (s *Snapshot) latencies(m metric, count uint64, seconds float64, buckets map[float64]uint64, labels []string) {
	into(s.Values, m.name+"_count", labels, float64(count))
	into(s.Values, m.name+"_sum", labels, seconds)
	if _, ours := buckets[bounds[0].Seconds()]; !ours {
		return // the buckets of a library
	}
	each, before := make([]uint64, 0, len(bounds)+1), uint64(0)
	for _, bound := range bounds {
		n := buckets[bound.Seconds()]
		each, before = append(each, n-before), n
	}
	into(s.Latencies, m.name, labels, append(each, count-before))
}

func into[V any](m map[string]map[string]V, name string, labels []string, value V) {
	if m[name] == nil {
		m[name] = make(map[string]V)
	}
	m[name][strings.Join(labels, "|")] = value
}
