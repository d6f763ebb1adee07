package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// A metric is one name with all values of its labels.
type metric struct {
	*prometheus.Desc
	name string
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), name, prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), name, prometheus.GaugeValue}
}

func histogram(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), name, prometheus.UntypedValue}
}

// A sink receives the figures of one reading.
type sink struct{ receiver }

// A receiver keeps figures, or passes them on.
type receiver interface {
	value(m metric, value float64, labels []string)
	latencies(m metric, count uint64, seconds float64, buckets map[float64]uint64, labels []string)
}

type toPrometheus chan<- prometheus.Metric

func (c toPrometheus) value(m metric, value float64, labels []string) {
	c <- prometheus.MustNewConstMetric(m.Desc, m.kind, value, labels...)
}

func (c toPrometheus) latencies(m metric, count uint64, seconds float64, buckets map[float64]uint64, labels []string) {
	c <- prometheus.MustNewConstHistogram(m.Desc, count, seconds, buckets, labels...)
}

func (s sink) put(m metric, value float64, labels ...string) { s.value(m, value, labels) }

func (s sink) putBool(m metric, value bool, labels ...string) {
	n := 0.0
	if value {
		n = 1
	}
	s.put(m, n, labels...)
}

// putLatencies writes a histogram of the recorders' counts.
func (s sink) putLatencies(m metric, r *Requests, labels ...string) {
	if r == nil {
		return
	}
	var count uint64
	buckets := make(map[float64]uint64, len(bounds))
	for i := range len(bounds) + 1 {
		for j := range r.recorders {
			count += uint64(r.recorders[j].buckets[i].Load())
		}
		if i < len(bounds) {
			buckets[bounds[i].Seconds()] = count
		}
	}
	s.latencies(m, count, r.took(), buckets, labels)
}

// putErrors writes the failed requests by cause. It writes zero causes as well, so that their first
// occurrence is an increase.
func (s sink) putErrors(m metric, r *Requests, labels ...string) {
	if r == nil {
		return
	}
	for cause, n := range r.causes {
		s.put(m, float64(n.Load()), append(labels[:len(labels):len(labels)], cause)...)
	}
	if n := r.unknown.Load(); n > 0 {
		s.put(m, float64(n), append(labels[:len(labels):len(labels)], "OTHER")...)
	}
}
