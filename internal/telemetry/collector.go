package telemetry

import (
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// Sources are the inputs of a [Collector]. A nil or empty one does not exist on this server.
type Sources struct {
	Version string
	Schemes []string             // served ones
	Health  func() health.Report // the server's problems

	Tags       iter.Seq[segment.Stats]                 // every tag in use, each time anew
	Tag        func(name string) (segment.Stats, bool) // one of them, with its segments
	StoreErr   func() error                            // why the latest look at the store failed
	StoreCalls *Requests

	Worker     func() worker.Status
	Leases     func() Leases
	StartsLeft func() (n int64, ok bool) // how many starts have worker IDs left, where each uses one up
	Layouts    []Layout

	Requests *FrontEnds
	Ports    []Port

	Cluster func() health.Cluster // of this server's member

	CutKeys func() int64 // requests of Java Leaf's route for a tag whose name was cut at its last dot

	CertificateEnd func() time.Time // when the server's certificate expires
}

// A Layout is a served layout.
type Layout struct {
	Scheme, Name string
	snowflake.Layout
	Stats func() snowflake.Stats
}

// A Port is an address that a server listens on.
type Port struct {
	Name  string
	Stats func() (open int, refused int64) // connections
}

// A Collector reads the statistics of a server when it is scraped.
type Collector struct {
	Sources
	mu   sync.Mutex
	tags tags
}

// NewCollector returns a collector that reads from s.
func NewCollector(s Sources) *Collector {
	return &Collector{Sources: s, tags: tags{known: make(map[string]*tagHistory)}}
}

// Describe implements [prometheus.Collector]. It describes nothing, because the metrics depend on
// the server.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

var (
	buildInfo      = gauge("leaf_build_info", "1, with the version of Leaf and of Go.", "version", "go_version")
	condition      = gauge("leaf_condition", "1 while something is wrong with the server in this way, else 0.", "condition")
	ready          = gauge("leaf_ready", "1 if requests for IDs of the scheme can be served, else 0.", "scheme")
	certificateEnd = gauge("leaf_tls_certificate_expiry_timestamp_seconds", "When the server's certificate expires, as a Unix time.")

	storeUp     = gauge("leaf_store_up", "1 if the latest look at the store succeeded, else 0.")
	storeCalls  = histogram("leaf_store_call_duration_seconds", "How long the store took for an allocation.")
	storeErrors = counter("leaf_store_call_errors_total", "Allocations that failed, by cause.", "cause")

	requests      = histogram("leaf_request_duration_seconds", "How long requests for IDs took. Each of the requests that arrive at once takes the time of all.", "front_end")
	requestErrors = counter("leaf_request_errors_total", "Requests for IDs that failed, by cause.", "front_end", "cause")
	connections   = gauge("leaf_connections", "Open connections.", "port")
	cutKeys       = counter("leaf_java_cut_keys_total", "Requests of Java Leaf's route whose key was cut at its last dot.")
	refused       = counter("leaf_connections_refused_total", "Connections that the server closed because it had too many.", "port")
)

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collect(sink{toPrometheus(ch)}, c.tags.withSeries)
}

// collect puts all figures, and those of the tags that series selects.
func (c *Collector) collect(out sink, series func(now time.Time) iter.Seq[*segment.Stats]) {
	now := time.Now()
	out.put(buildInfo, 1, c.Version, runtime.Version())
	report := c.Health()
	unasked := unaskedSchemes(report)
	c.collectHealth(out, report, unasked)
	if c.CertificateEnd != nil {
		out.put(certificateEnd, float64(c.CertificateEnd().Unix()))
	}
	c.collectRequests(out)
	if c.Tags != nil {
		c.collectStore(out)
		c.tags.update(c.Tags)
		c.tags.sum().collect(out)
		for s := range series(now) {
			putTag(out, s)
		}
	}
	if c.Worker != nil && len(unasked) == 0 {
		c.collectWorker(out, now)
	}
	if c.Cluster != nil {
		c.collectCluster(out)
	}
}

// conditions are all that a report may hold.
var conditions = []string{
	health.Stopping, health.StoreSilent, health.StoreUnfit, health.StoreFailing, health.TagFailing, health.NoWorkerID, health.RegistryFailing,
	health.StateFile, health.ClockOff, health.ClockStepped, health.LayoutEnding, health.WorkerIDsLow,
}

// unaskedSchemes returns the schemes that are on by default but lack their registry.
func unaskedSchemes(report health.Report) (schemes []string) {
	for _, c := range report.Conditions {
		if c.Optional {
			schemes = append(schemes, c.Schemes...)
		}
	}
	return schemes
}

func (c *Collector) collectHealth(out sink, report health.Report, unasked []string) {
	for _, scheme := range c.Schemes {
		if !slices.Contains(unasked, scheme) {
			out.putBool(ready, report.Err(scheme) == nil, scheme)
		}
	}
	for _, name := range conditions {
		is := slices.ContainsFunc(report.Conditions, func(h health.Condition) bool { return h.Name == name && !h.Optional })
		out.putBool(condition, is, name)
	}
}

func (c *Collector) collectRequests(out sink) {
	for name, r := range c.Requests.all() {
		out.putLatencies(requests, r, name)
		out.putErrors(requestErrors, r, name)
	}
	if c.CutKeys != nil {
		out.put(cutKeys, float64(c.CutKeys()))
	}
	for _, p := range c.Ports {
		open, turnedAway := p.Stats()
		out.put(connections, float64(open), p.Name)
		out.put(refused, float64(turnedAway), p.Name)
	}
}

func (c *Collector) collectStore(out sink) {
	out.putBool(storeUp, c.StoreErr() == nil)
	out.putLatencies(storeCalls, c.StoreCalls)
	out.putErrors(storeErrors, c.StoreCalls)
}
