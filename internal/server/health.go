package server

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// health reports the server's problems. It asks the generators, and no database.
func (s *Server) health() health.Report { return s.cached.get(s.stopping.Load(), s.judge) }

// A cachedReport caches an expensive report.
type cachedReport struct {
	mu       sync.Mutex
	report   health.Report
	until    time.Time
	stopping bool
}

// cacheFactor decides how long the server caches a report: this many times the duration of making it,
// if that looked at each tag, as while a store is away. A server may have very many tags, and
// anyone may ask for the health. mostStanding bounds the time.
const (
	cacheFactor  = 20
	mostStanding = time.Second
)

func (v *cachedReport) get(stopping bool, judge func(stopping bool) (_ health.Report, costly bool)) health.Report {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if now.Before(v.until) && v.stopping == stopping {
		return v.report
	}
	report, costly := judge(stopping)
	v.report, v.stopping = report, stopping
	if costly {
		took := time.Since(now)
		v.until = now.Add(took + min(cacheFactor*took, mostStanding))
	}
	return v.report
}

func (s *Server) judge(stopping bool) (r health.Report, costly bool) {
	facts := health.Facts{Stopping: stopping, Now: time.Now(), Least: s.current.Load().ReadyFor}
	if s.set != nil {
		facts.Store = s.storeFacts()
		facts.Store.Tags = func(yield func(segment.Stats) bool) {
			costly = true
			s.set.Server().Totals()(yield)
		}
	}
	if s.times != nil {
		facts.Lease = s.leaseFacts()
	}
	r = health.Judge(facts)
	return r, costly
}

// ready says why no requests should be sent to the server.
func (s *Server) ready() error { return s.health().Err("") }

func (s *Server) storeFacts() *health.StoreFacts {
	_, ended := s.opts.Store.MemberFailure()
	f := &health.StoreFacts{
		Schemes: []string{issuer.Segment}, Err: s.set.Server().StoreErr(), Unfit: s.set.Server().Unfit(),
		Failing: s.set.Server().Failing(), Member: ended,
	}
	for range s.set.Server().Totals() {
		f.InUse = true
		break
	}
	if s.opts.Store.Traits.Ticket {
		f.Schemes = append(f.Schemes, issuer.Ticket)
	}
	select {
	case <-s.set.Ready():
		f.Answered = true
	default:
	}
	return f
}

func (s *Server) leaseFacts() *health.LeaseFacts {
	t := s.times
	f := &health.LeaseFacts{
		Schemes: slices.Sorted(maps.Keys(t.sources)),
		Err:     t.node.Keeper().Err(),
		Status:  t.node.Keeper().Status(),
		Layouts: make(map[string]time.Time, len(t.layouts)),
	}
	switch {
	case f.Err == nil:
		s.held.Store(true)
	case errors.Is(f.Err, worker.ErrNotCreated), errors.Is(f.Err, leaf.ErrUnsupported): // the latter of a server without worker IDs
		s.noRegistry.Store(true) // which stays so while the database, also the store's, is away
	}
	f.Held = s.held.Load()
	f.Optional = t.implicit && !f.Held && s.noRegistry.Load()
	f.Supply, _ = t.workers.Supply()
	for _, l := range t.layouts {
		f.Layouts[l.Name] = l.Last()
	}
	for scheme, source := range t.sources {
		if source.Used() {
			f.InUse = append(f.InUse, scheme)
		}
	}
	return f
}
