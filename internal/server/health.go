package server

import (
	"maps"
	"slices"
	"time"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// health says what is wrong with the server. It asks the generators, and no database.
func (s *Server) health() health.Report {
	facts := health.Facts{Stopping: s.stopping.Load(), Now: time.Now(), Least: s.current.Load().ReadyFor}
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
	f := &health.StoreFacts{Schemes: []string{issuer.Segment}, Err: s.set.StoreErr(), Unfit: s.set.Unfit()}
	f.Tags = s.tags(f.Err)
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

// tags returns the statistics of the tags in use: of all, in memory of the size that was needed
// last, if the store or a tag fails; else of one, which says that there are some. There may be
// very many, and the health is asked for every few seconds.
func (s *Server) tags(storeErr error) []segment.Stats {
	if storeErr == nil && s.set.Failing() == 0 {
		for st := range s.set.Totals() {
			return []segment.Stats{st}
		}
		return nil
	}
	all := slices.AppendSeq(make([]segment.Stats, 0, s.counts.tags.Load()+8), s.set.Totals())
	s.counts.tags.Store(int64(len(all)))
	return all
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
