package server

import (
	"cmp"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// counts are the server's counters for metrics, besides the requests.
type counts struct {
	store *telemetry.Requests // nil: no segment scheme
	cut   cutKeys
}

// maxCutKeys bounds the keys that a cutKeys remembers.
const maxCutKeys = 1000

// cutKeys counts the requests with a cut key, and logs each key once.
type cutKeys struct {
	total atomic.Int64
	mu    sync.Mutex
	seen  map[string]bool
}

func (c *cutKeys) note(log *slog.Logger, key, cut string) {
	c.total.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[key] || len(c.seen) == maxCutKeys {
		return
	}
	if c.seen == nil {
		c.seen = make(map[string]bool)
	}
	c.seen[key] = true
	log.Warn("no tag has this name, so the name was cut at its last dot, as Java Leaf does: correct the client, or create the tag", "name", key, "served", cut)
}

// metricSources returns the sources of the metrics.
func (s *Server) metricSources(opts *frontend.Options) telemetry.Sources {
	sources := telemetry.Sources{
		Version:  s.opts.Version,
		Schemes:  opts.IDs.Schemes(),
		Health:   s.health,
		Requests: opts.Requests,
		CutKeys:  s.counts.cut.total.Load,
	}
	for _, p := range s.ports {
		sources.Ports = append(sources.Ports, telemetry.Port{Name: p.Name, Stats: func() (int, int64) { return p.protocol.Stats() }})
	}
	for _, b := range []*backend.Backend{s.opts.Store, s.opts.Workers} {
		if b != nil && sources.Cluster == nil {
			sources.Cluster = b.ClusterStats()
		}
	}
	if s.tls != nil {
		sources.CertificateEnd = s.tls.expiry
	}
	if s.set != nil {
		sources.Tags, sources.Tag = s.set.Server().Totals(), s.set.Server().Of
		sources.StoreErr, sources.StoreCalls = s.storeErr, s.counts.store
	}
	if s.times != nil {
		s.times.addSources(&sources)
	}
	return sources
}

// addSources adds where the statistics of the time-based schemes are.
func (t *times) addSources(s *telemetry.Sources) {
	s.Worker = t.workers.Status
	s.Leases = func() telemetry.Leases { return telemetry.Leases(t.workers.LeaseStats()) }
	s.StartsLeft = func() (int64, bool) {
		supply, ok := t.workers.Supply()
		return supply.Left(), ok && supply.Max > 0
	}
	for _, l := range t.layouts {
		s.Layouts = append(s.Layouts, telemetry.Layout{Scheme: cmp.Or(l.Scheme, issuer.Snowflake), Name: l.Name, Layout: l.Layout, Stats: t.node.Generator(l.Name).Stats})
	}
}

// expiry returns when the certificate expires.
func (c *certificates) expiry() time.Time { return c.current().Certificates[0].Leaf.NotAfter }

// storeErr returns the error of the latest check of the store, or an error before the first.
func (s *Server) storeErr() error {
	select {
	case <-s.set.Ready():
		return s.set.Server().StoreErr()
	default:
		return errors.New("the store has not answered yet")
	}
}
