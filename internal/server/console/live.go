package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf/internal/telemetry"
)

const (
	busiest  = 20               // tags of a snapshot, besides those that pages name
	span     = 15 * time.Minute // of the history
	maxPages = 64               // open ones

	// A reading takes place each second while a page is open. A share bounds what all readings cost
	// where a server has very many tags: of a core, one in so many.
	watched, watchedShare     = time.Second, 50
	unwatched, unwatchedShare = 5 * time.Second, 500
)

// A point is the part of a snapshot that the history keeps.
type point struct {
	at     time.Time
	issued map[string]float64    // IDs since the start, by scheme
	tags   map[string][3]float64 // likewise by tag, with its stock and its step
}

// A live reads snapshots for all open pages, and remembers a quarter of an hour.
type live struct {
	read func(busiest int, named []string) *telemetry.Snapshot
	wake chan struct{} // a page was opened

	mu     sync.Mutex
	points []point
	last   *telemetry.Snapshot
	pages  map[*page]bool
}

// A page is an open one.
type page struct {
	tags []string                 // that it names
	next chan *telemetry.Snapshot // the latest one that it has not got
}

func newLive(read func(int, []string) *telemetry.Snapshot) *live {
	return &live{read: read, wake: make(chan struct{}, 1), pages: make(map[*page]bool)}
}

// Run reads until ctx ends.
func (c *Console) Run(ctx context.Context) {
	if c.live.read == nil {
		return
	}
	for {
		began := time.Now()
		cost := c.live.sample()
		for due := false; !due; { // a page that was opened may bring the next reading forward
			timer := time.NewTimer(time.Until(began.Add(c.live.interval(cost))))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
				due = true
			case <-c.live.wake:
				timer.Stop()
			}
		}
	}
}

// interval returns the time between the beginnings of two readings that take so long.
func (l *live) interval(cost time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pages) > 0 {
		return max(watched, watchedShare*cost)
	}
	return max(unwatched, unwatchedShare*cost)
}

// sample reads a snapshot, hands it to all pages, and returns how long the reading took.
func (l *live) sample() (cost time.Duration) {
	began := time.Now()
	s := l.read(busiest, l.named())
	cost = time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = s
	l.keep(newPoint(s))
	for p := range l.pages {
		p.give(s)
	}
	return cost
}

// keep adds p to the history and forgets old points. Points are about a second apart.
func (l *live) keep(p point) {
	if n := len(l.points); n > 0 && p.at.Sub(l.points[n-1].at) < watched/2 {
		l.points = l.points[:n-1]
	}
	old := slices.IndexFunc(l.points, func(q point) bool { return p.at.Sub(q.at) <= span })
	if old < 0 {
		old = len(l.points)
	}
	l.points = append(slices.Delete(l.points, 0, old), p)
}

func newPoint(s *telemetry.Snapshot) point {
	p := point{at: s.Time, issued: make(map[string]float64), tags: make(map[string][3]float64, len(s.Tags))}
	if n, ok := s.Values["leaf_segment_ids_issued_total"][""]; ok {
		p.issued["segment"] = n
	}
	for labels, n := range s.Values["leaf_layout_ids_issued_total"] {
		p.issued[schemeIn(labels)] += n
	}
	for _, t := range s.Tags {
		value := func(name string) float64 { return s.Values[name][t.Tag] }
		p.tags[t.Tag] = [3]float64{value("leaf_tag_ids_issued_total"), value("leaf_tag_stock"), value("leaf_tag_step")}
	}
	return p
}

// named returns the tags that open pages name.
func (l *live) named() (tags []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pages {
		tags = append(tags, p.tags...)
	}
	return tags
}

// open adds a page, unless too many are open. It gets the latest snapshot at once, and the next one
// as soon as that is due.
func (l *live) open(tags []string) *page {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pages) >= maxPages {
		return nil
	}
	p := &page{tags, make(chan *telemetry.Snapshot, 1)}
	l.pages[p] = true
	if l.last != nil {
		p.give(l.last)
	}
	select {
	case l.wake <- struct{}{}:
	default: // a reading is due already
	}
	return p
}

func (l *live) close(p *page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pages, p)
}

// give replaces a snapshot that the page has not got yet. Only one goroutine at a time gives.
func (p *page) give(s *telemetry.Snapshot) {
	select {
	case <-p.next:
	default:
	}
	p.next <- s
}
