package telemetry

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// seq yields so many tags; each is busier than the one before.
func seq(n int) iter.Seq[segment.Stats] {
	return func(yield func(segment.Stats) bool) {
		for i := range n {
			s := segment.Stats{Tag: fmt.Sprintf("t%03d", i), Loaded: true, Rate: float64(i), Issued: int64(10 * i), Stock: int64(i), Step: 7, Calls: 3}
			if !yield(s) {
				return
			}
		}
	}
}

func newTestCollector(tags int) *Collector {
	requests := NewFrontEnds([]string{"INTERNAL"})
	requests.Of("http").Recorder(1).took(2_000_000, 5)
	requests.Of("http").Failed("INTERNAL")
	return NewCollector(Sources{
		Version: "v1", Schemes: []string{"segment"}, Health: func() health.Report { return health.Report{} },
		Tags: seq(tags), StoreErr: func() error { return nil }, StoreCalls: NewStoreCalls(), Requests: requests,
		Tag: func(name string) (segment.Stats, bool) {
			return segment.Stats{Tag: name, Segments: make([]segment.SegmentStats, 2)}, true
		},
		Worker: func() worker.Status { return worker.Status{Held: true, Worker: 5, Term: 2} },
	})
}

// Every figure of a snapshot is one of a scrape, and it lacks none but those of other tags.
func TestSnapshotEqualsScrape(t *testing.T) {
	c := newTestCollector(3)
	s := c.Snapshot(3, nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, name := range []string{"condition", "scheme", "front_end", "cause", "tag", "version", "go_version"} {
				if i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name }); i >= 0 {
					labels = append(labels, m.GetLabel()[i].GetValue())
				}
			}
			compared += compare(t, s, family, m, labels)
		}
	}
	if compared < 50 {
		t.Errorf("only %d figures were compared", compared)
	}
}

func compare(t *testing.T, s *Snapshot, family *dto.MetricFamily, m *dto.Metric, labels []string) int {
	t.Helper()
	var key strings.Builder
	for i, l := range labels {
		if i > 0 {
			key.WriteString("|")
		}
		key.WriteString(l)
	}
	want := map[string]float64{family.GetName(): m.GetGauge().GetValue() + m.GetCounter().GetValue()}
	if h := m.GetHistogram(); h != nil {
		want = map[string]float64{family.GetName() + "_count": float64(h.GetSampleCount()), family.GetName() + "_sum": h.GetSampleSum()}
		total := uint64(0)
		for _, n := range s.Latencies[family.GetName()][key.String()] {
			total += n
		}
		if total != h.GetSampleCount() {
			t.Errorf("%s{%s}: the buckets hold %d, want %d", family.GetName(), key.String(), total, h.GetSampleCount())
		}
	}
	for name, value := range want {
		got, ok := s.Values[name][key.String()]
		if infinite := value > 1e300; ok == infinite || !infinite && got != value && name != "leaf_worker_horizon_seconds" { // that one runs
			t.Errorf("%s{%s}: %v %v, want %v", name, key.String(), got, ok, value)
		}
	}
	return len(want)
}

func TestSnapshotChoosesTags(t *testing.T) {
	s := newTestCollector(200).Snapshot(3, []string{"t005", "absent"})
	var names []string
	for _, tag := range s.Tags {
		names = append(names, tag.Tag)
		if has := len(tag.Segments) > 0; has != (tag.Tag == "t005") {
			t.Errorf("%s: segments %v", tag.Tag, has)
		}
	}
	if want := []string{"t199", "t198", "t197", "t005"}; !slices.Equal(names, want) {
		t.Errorf("chose %v, want %v", names, want)
	}
	if got := s.Values["leaf_segment_ids_issued_total"][""]; got != 10*199*200/2 {
		t.Errorf("all tags have issued %v", got)
	}
	if _, ok := s.Values["leaf_tag_stock"]["t004"]; ok {
		t.Error("a figure of a tag that was not chosen")
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, tags := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(tags), func(b *testing.B) {
			c := newTestCollector(tags)
			for b.Loop() {
				c.Snapshot(20, nil)
			}
		})
	}
}
