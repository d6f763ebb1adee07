package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
)

// health says what is wrong with the server. It asks the generators, and no database.
func (s *Server) health() health.Report { return s.verdict.get(s.stopping.Load(), s.judge) }

// A verdict is a report that stands for a while.
type verdict struct {
	mu       sync.Mutex
	report   health.Report
	until    time.Time
	stopping bool
}

// standsFor is for how many times as long as it took to make a report the report stands.
// While a store is away each tag is looked at, and anyone may ask for the health.
const standsFor = 20

func (v *verdict) get(stopping bool, judge func(stopping bool) health.Report) health.Report {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if now.Before(v.until) && v.stopping == stopping {
		return v.report
	}
	v.report, v.stopping = judge(stopping), stopping
	v.until = now.Add((standsFor + 1) * time.Since(now))
	return v.report
}

func (s *Server) judge(stopping bool) health.Report {
	facts := health.Facts{Stopping: stopping, Now: time.Now(), Least: s.current.Load().ReadyFor}
	if s.set != nil {
		facts.Store = s.storeFacts()
	}
	if s.times != nil {
		facts.Lease = s.leaseFacts()
	}
	return health.Judge(facts)
}

// ready says why no requests should be sent to the server.
func (s *Server) ready() error { return s.health().Err("") }

func (s *Server) storeFacts() *health.StoreFacts {
	f := &health.StoreFacts{
		Schemes: []string{issuer.Segment}, Err: s.set.StoreErr(), Unfit: s.set.Unfit(),
		Failing: s.set.Failing(), Tags: s.set.Totals(),
	}
	for range f.Tags {
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
		Schemes:  slices.Sorted(maps.Keys(t.sources)),
		Err:      t.node.Keeper().Err(),
		Status:   t.node.Keeper().Status(),
		Layouts:  make(map[string]time.Time, len(t.layouts)),
		Optional: t.implicit,
	}
	if f.Err == nil {
		s.held.Store(true)
	}
	f.Held = s.held.Load()
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
