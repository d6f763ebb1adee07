package telemetry

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// MaxTags is how many tags have series of their own.
const MaxTags = 500

// rankInterval is the time between two rankings of the tags.
const rankInterval = time.Minute

// A tagMetric is a metric that the statistics of a tag, or the sum of those of all, give.
type tagMetric struct {
	metric
	value func(*segment.Stats) float64
}

// perTag are the series of one tag.
var perTag = []tagMetric{
	{counter("leaf_tag_ids_issued_total", "IDs issued.", "tag"), func(s *segment.Stats) float64 { return float64(s.Issued) }},
	{counter("leaf_tag_ids_lost_total", "IDs that the store granted and that never will be issued.", "tag"), func(s *segment.Stats) float64 { return float64(s.Lost) }},
	{counter("leaf_tag_ids_returned_total", "IDs given back to the store.", "tag"), func(s *segment.Stats) float64 { return float64(s.Returned) }},
	{gauge("leaf_tag_stock", "IDs in memory.", "tag"), func(s *segment.Stats) float64 { return float64(s.Stock) }},
	{gauge("leaf_tag_stock_seconds", "How long the stock lasts at the recent demand; +Inf without demand.", "tag"), stockSeconds},
	{gauge("leaf_tag_step", "The tag's own step, as the store last said.", "tag"), func(s *segment.Stats) float64 { return float64(s.Step) }},
	{counter("leaf_tag_store_calls_total", "Allocations requested from the store.", "tag"), func(s *segment.Stats) float64 { return float64(s.Calls) }},
	{counter("leaf_tag_store_call_seconds_total", "Time that these took.", "tag"), func(s *segment.Stats) float64 { return s.CallTime.Seconds() }},
	{counter("leaf_tag_store_errors_total", "Allocations that failed.", "tag"), func(s *segment.Stats) float64 { return float64(s.Failures) }},
	{counter("leaf_tag_waits_total", "Calls that had to wait for the store.", "tag"), func(s *segment.Stats) float64 { return float64(s.Waits) }},
	{counter("leaf_tag_exhausted_total", "Calls that failed because no ID was left.", "tag"), func(s *segment.Stats) float64 { return float64(s.Exhausted) }},
	{counter("leaf_tag_regressions_total", "Times that the store had lost writes of the counter.", "tag"), func(s *segment.Stats) float64 { return float64(s.Regressions) }},
}

// ofAllTags are the sums over all tags, those without series of their own included.
var ofAllTags = []tagMetric{
	{counter("leaf_segment_ids_issued_total", "IDs issued, of all tags."), func(s *segment.Stats) float64 { return float64(s.Issued) }},
	{counter("leaf_segment_ids_lost_total", "IDs that the store granted and that never will be issued, of all tags."), func(s *segment.Stats) float64 { return float64(s.Lost) }},
	{counter("leaf_segment_ids_returned_total", "IDs given back to the store, of all tags."), func(s *segment.Stats) float64 { return float64(s.Returned) }},
	{gauge("leaf_segment_stock", "IDs in memory, of all tags."), func(s *segment.Stats) float64 { return float64(s.Stock) }},
	{counter("leaf_segment_waits_total", "Calls that had to wait for the store, of all tags."), func(s *segment.Stats) float64 { return float64(s.Waits) }},
	{counter("leaf_segment_exhausted_total", "Calls that failed because no ID was left, of all tags."), func(s *segment.Stats) float64 { return float64(s.Exhausted) }},
	{counter("leaf_segment_regressions_total", "Times that the store had lost writes of a counter, of all tags."), func(s *segment.Stats) float64 { return float64(s.Regressions) }},
}

var (
	tagsInUse     = gauge("leaf_segment_tags", "Tags in use.")
	tagsFailing   = gauge("leaf_segment_tags_failing", "Tags whose calls to the store fail at present.")
	tagsEmpty     = gauge("leaf_segment_tags_empty", "Tags in use without an ID in memory.")
	shortestStock = gauge("leaf_segment_shortest_stock_seconds", "How long the shortest stock of a tag lasts at the recent demand; +Inf without demand.")
)

func stockSeconds(s *segment.Stats) float64 {
	if s.Rate <= 0 {
		return math.Inf(1)
	}
	return float64(s.Stock) / s.Rate
}

// add adds the counters of s to those of sum.
func add(sum, s *segment.Stats) {
	sum.Issued += s.Issued
	sum.Lost += s.Lost
	sum.Returned += s.Returned
	sum.Waits += s.Waits
	sum.Exhausted += s.Exhausted
	sum.Regressions += s.Regressions
}

// A tagHistory is what earlier scrapes have found of a tag.
type tagHistory struct {
	last   segment.Stats // as of the latest scrape
	scrape int64         // the number of that scrape
	recent float64       // demand since the latest ranking
	score  float64       // recent demand
	shown  bool          // it has series of its own
}

// tags remembers the tags of earlier scrapes: sums must not fall when a tag goes out of use,
// and the most active tags are to have series of their own.
type tags struct {
	known  map[string]*tagHistory
	shown  int           // how many of them have series
	gone   segment.Stats // the counters of forgotten tags
	scrape int64
	ranked time.Time
}

func (t *tags) update(all iter.Seq[segment.Stats]) {
	t.scrape++
	for s := range all {
		t.note(&s)
	}
	t.sweep()
}

// sum returns the summary as of the latest update.
func (t *tags) sum() *summary {
	sum := &summary{Stats: t.gone, shortest: math.Inf(1)}
	for _, h := range t.known {
		sum.add(&h.last)
	}
	return sum
}

// withSeries ranks the tags, and returns those with series of their own.
func (t *tags) withSeries(now time.Time) iter.Seq[*segment.Stats] {
	t.rank(now)
	return func(yield func(*segment.Stats) bool) {
		for _, h := range t.known {
			if h.shown && !yield(&h.last) {
				return
			}
		}
	}
}

func putTag(out sink, s *segment.Stats) {
	for _, m := range perTag {
		out.put(m.metric, m.value(s), s.Tag)
	}
}

// A summary describes all tags together.
type summary struct {
	segment.Stats
	loaded, failing, empty int
	shortest               float64
}

func (t *summary) add(s *segment.Stats) {
	add(&t.Stats, s)
	t.Stock += s.Stock
	if s.Err != nil {
		t.failing++
	}
	if s.Loaded {
		t.loaded++
	}
	if s.Loaded && s.Stock == 0 {
		t.empty++
	}
	t.shortest = min(t.shortest, stockSeconds(s))
}

func (t *summary) collect(out sink) {
	for _, m := range ofAllTags {
		out.put(m.metric, m.value(&t.Stats))
	}
	out.put(tagsInUse, float64(t.loaded))
	out.put(tagsFailing, float64(t.failing))
	out.put(tagsEmpty, float64(t.empty))
	out.put(shortestStock, t.shortest)
}

func (t *tags) note(s *segment.Stats) {
	h := t.known[s.Tag]
	if h == nil {
		h = new(tagHistory)
		t.known[s.Tag] = h
	}
	if begunAnew(s, &h.last) {
		add(&t.gone, &h.last)
		h.last = segment.Stats{}
	}
	s.Issued, s.Lost = max(s.Issued, h.last.Issued), max(s.Lost, h.last.Lost) // IDs that a client has given back are issued again
	h.recent += float64(s.Issued - h.last.Issued + s.Exhausted - h.last.Exhausted)
	h.last, h.scrape = *s, t.scrape
}

// begunAnew reports whether a tag was dropped, and is in use again: a figure that never falls did.
func begunAnew(s, last *segment.Stats) bool {
	return s.Calls < last.Calls || s.Returned < last.Returned || s.Waits < last.Waits ||
		s.Exhausted < last.Exhausted || s.Regressions < last.Regressions
}

// sweep forgets the tags that this scrape did not find.
func (t *tags) sweep() {
	for name, h := range t.known {
		if h.scrape == t.scrape {
			continue
		}
		add(&t.gone, &h.last)
		t.hide(h)
		delete(t.known, name)
	}
}

// rank decides which tags have their own series: the most active of those with granted IDs. A tag
// keeps its series until another one is twice as active, so that a monitoring system does not get
// new series all the time.
func (t *tags) rank(now time.Time) {
	full := t.shown >= MaxTags
	due := now.Sub(t.ranked) >= rankInterval
	if full && !due {
		return
	}
	candidates := make([]*tagHistory, 0, len(t.known))
	for _, h := range t.known {
		if due {
			h.score, h.recent = h.score/2+h.recent, 0
		}
		switch {
		case !h.last.Loaded:
			t.hide(h)
		case due, !h.shown:
			candidates = append(candidates, h)
		}
	}
	if due {
		t.ranked, t.shown = now, 0
	}
	if room := MaxTags - t.shown; len(candidates) > room {
		slices.SortFunc(candidates, func(a, b *tagHistory) int {
			return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.last.Tag, b.last.Tag))
		})
		for _, h := range candidates[room:] {
			h.shown = false
		}
		candidates = candidates[:room]
	}
	for _, h := range candidates {
		h.shown = true
	}
	t.shown += len(candidates)
}

func (t *tags) hide(h *tagHistory) {
	if h.shown {
		h.shown = false
		t.shown--
	}
}

func (h *tagHistory) rank() float64 {
	if h.shown {
		return 2 * (h.score + h.recent)
	}
	return h.score + h.recent
}
