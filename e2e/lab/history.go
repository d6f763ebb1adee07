package lab

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// A Receipt is a range that a client received.
type Receipt struct {
	Range  leaf.Range
	Space  string // the ID space
	Server string // one life of one server process; empty: unknown
	Client string

	Calls int // answered calls in this receipt, if not one: those of a pipeline

	Unordered bool // the IDs of one server need not increase from call to call

	// When the call began and when it had ended, on a clock that all clients share.
	Begin, End time.Duration

	// The server's own clock then, in Unix milliseconds; for [History.Timely].
	ClockBegin, ClockEnd int64
}

func (r *Receipt) String() string {
	return fmt.Sprintf("%v of %s (%s for %s, %v to %v)", r.Range, r.Space, r.Server, r.Client,
		r.Begin.Round(time.Millisecond), r.End.Round(time.Millisecond))
}

// A Failure is a call that brought nothing.
type Failure struct {
	Client     string
	Calls      int // in this receipt, if not one
	Begin, End time.Duration
	Err        error
}

// A History is what clients received. The zero value is empty and ready; its methods are
// safe for concurrent use. It keeps ranges, so billions of IDs in batches are little.
type History struct {
	mu       sync.Mutex
	calls    int64 // that brought something
	failed   int64 // calls that brought nothing
	receipts []Receipt
	failures []Failure
	wrong    []error // answers that do not fit their request
}

// Add records ranges that one call brought, or the calls of a pipeline.
func (h *History) Add(call Receipt, ranges ...leaf.Range) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls += int64(max(call.Calls, 1))
	h.append(call, ranges)
}

// Extend records further ranges of a call that counts already: those of another server.
func (h *History) Extend(call Receipt, ranges ...leaf.Range) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.append(call, ranges)
}

func (h *History) append(call Receipt, ranges []leaf.Range) {
	for _, r := range ranges {
		call.Range = r
		h.receipts = append(h.receipts, call)
	}
}

// Fail records a call that brought nothing.
func (h *History) Fail(f Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed += int64(max(f.Calls, 1))
	h.failures = append(h.failures, f)
}

// FirstFailure returns the error of the first call that brought nothing.
func (h *History) FirstFailure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failures) == 0 {
		return nil
	}
	return h.failures[0].Err
}

// Wrong records an answer that does not fit its request: it has another number of IDs, or it is
// not of the protocol.
func (h *History) Wrong(client string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Errorf("wrong answer: %s: %w", client, err))
}

// Fits reports the first wrong answer, and counts them.
func (h *History) Fits() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%d answers do not fit their request: %w", len(h.wrong), h.wrong[0])
}

// Count returns the number of IDs, and of failed calls.
func (h *History) Count() (ids, failed int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.receipts {
		ids += r.Range.Len()
	}
	return ids, h.failed
}

// Answered returns the number of answered calls.
func (h *History) Answered() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// sorted returns the receipts that keep chooses, sorted.
func (h *History) sorted(compare func(a, b *Receipt) int, keep func(*Receipt) bool) []*Receipt {
	h.mu.Lock()
	defer h.mu.Unlock()
	some := make([]*Receipt, 0, len(h.receipts))
	for i := range h.receipts {
		if r := &h.receipts[i]; keep == nil || keep(r) {
			some = append(some, r)
		}
	}
	slices.SortFunc(some, compare)
	return some
}

func of(space string) func(*Receipt) bool { return func(r *Receipt) bool { return r.Space == space } }

// lowest returns the first receipt by its range, of those that keep chooses; nil: it chooses none.
func (h *History) lowest(keep func(*Receipt) bool) (lowest *Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.receipts {
		if r := &h.receipts[i]; keep(r) && (lowest == nil || byRange(r, lowest) < 0) {
			lowest = r
		}
	}
	return lowest
}

func byBegin(a, b *Receipt) int { return cmp.Compare(a.Begin, b.Begin) }
func byEnd(a, b *Receipt) int   { return cmp.Compare(a.End, b.End) }

func byRange(a, b *Receipt) int {
	if a.Space != b.Space {
		return cmp.Compare(a.Space, b.Space)
	}
	if a.Range.Start != b.Range.Start {
		return cmp.Compare(a.Range.Start, b.Range.Start)
	}
	return cmp.Compare(a.Range.End, b.Range.End)
}

// Unique reports the lowest two receipts of one space that have an ID in common, and counts
// the duplicates.
func (h *History) Unique() error {
	if n, err := h.Duplicates(nil); err != nil {
		return fmt.Errorf("%d duplicates: %w", n, err)
	}
	return nil
}

// Duplicates counts the IDs issued twice, of the receipts that keep chooses (nil:
// all), and names the lowest two that have one in common.
func (h *History) Duplicates(keep func(*Receipt) bool) (twice int64, lowest error) {
	highest := new(Receipt) // of those so far, in this space, the one that ends last
	for i, r := range h.sorted(byRange, keep) {
		if r.Range.Empty() || r.Range.Start < 0 {
			return 0, fmt.Errorf("no range of IDs: %v", r)
		}
		if i > 0 && r.Space == highest.Space && r.Range.Start < highest.Range.End {
			twice += min(r.Range.End, highest.Range.End) - r.Range.Start
			if lowest == nil {
				lowest = fmt.Errorf("issued twice: %v and %v", highest, r)
			}
		}
		if r.Space != highest.Space || r.Range.End > highest.Range.End {
			highest = r
		}
	}
	return twice, lowest
}

// Ordered reports a receipt below one that the same client or another one had
// already received from the same server, of the same space, before its own call began.
// Receipts of one call count as one, and those without a server or order not at all.
func (h *History) Ordered() error {
	type place struct{ space, server string }
	ended := map[place][]*Receipt{} // by their end
	for _, r := range h.sorted(byEnd, func(r *Receipt) bool { return r.Server != "" && !r.Unordered }) {
		p := place{r.Space, r.Server}
		ended[p] = append(ended[p], r)
	}
	for p, ends := range ended {
		begins := slices.SortedFunc(slices.Values(ends), byBegin)
		highest := new(Receipt) // of the calls that ended before the present one began
		for _, r := range begins {
			for ; len(ends) > 0 && ends[0].End < r.Begin; ends = ends[1:] {
				if ends[0].Range.End > highest.Range.End {
					highest = ends[0]
				}
			}
			if r.Range.Start < highest.Range.End {
				return fmt.Errorf("%s answers out of order: %v after %v", p.server, r, highest)
			}
		}
	}
	return nil
}

// Within reports a receipt of a space outside the store's grants to its
// server, if it has one.
func (h *History) Within(space string, granted map[string][]leaf.Range) error {
	merged := map[string][]leaf.Range{}
	for server, ranges := range granted {
		merged[server] = merge(ranges)
	}
	if r := h.lowest(func(r *Receipt) bool { return r.Space == space && r.Server != "" && !covers(merged[r.Server], r.Range) }); r != nil {
		return fmt.Errorf("never granted to its server: %v", r)
	}
	return nil
}

// covers reports whether one of the merged ranges has all IDs of r.
func covers(merged []leaf.Range, r leaf.Range) bool {
	i, _ := slices.BinarySearchFunc(merged, r, func(g, r leaf.Range) int { return cmp.Compare(g.End, r.End) })
	return i < len(merged) && r.Start >= merged[i].Start
}

// Above reports a server's answers below an ID, to calls that began after an operator reported
// that all below were in use.
func (h *History) Above(space, server string, told time.Duration, least int64) error {
	below := func(r *Receipt) bool {
		return r.Space == space && r.Server == server && r.Begin > told && r.Range.Start < least
	}
	if r := h.lowest(below); r != nil {
		return fmt.Errorf("issued below %d, which its server was told of at %v: %v", least, told.Round(time.Millisecond), r)
	}
	return nil
}

// merge sorts ranges and joins those that touch.
func merge(ranges []leaf.Range) (merged []leaf.Range) {
	for _, r := range slices.SortedFunc(slices.Values(ranges), func(a, b leaf.Range) int { return cmp.Compare(a.Start, b.Start) }) {
		if last := len(merged) - 1; last >= 0 && r.Start <= merged[last].End {
			merged[last].End = max(merged[last].End, r.End)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// A TimeBound says when an ID may have been issued, in Unix milliseconds: ticks returns the
// beginning and the end of the time that it carries.
type TimeBound struct {
	Ticks         func(id int64) (start, end int64)
	Behind, Ahead int64 // of the server's clock, at most
}

// Timely reports a receipt of a space whose time is not that of its server's clock.
func (h *History) Timely(space string, bound TimeBound) error {
	off := func(r *Receipt) (ahead, behind int64) {
		_, first := bound.Ticks(r.Range.Start)
		last, _ := bound.Ticks(r.Range.End - 1)
		return last - r.ClockEnd, r.ClockBegin - first
	}
	r := h.lowest(func(r *Receipt) bool {
		if r.Space != space {
			return false
		}
		ahead, behind := off(r)
		return ahead > bound.Ahead || behind > bound.Behind
	})
	if r == nil {
		return nil
	}
	ahead, behind := off(r)
	if ahead > bound.Ahead {
		return fmt.Errorf("issued %d ms ahead of the clock, at most %d are allowed: %v", ahead, bound.Ahead, r)
	}
	return fmt.Errorf("issued %d ms behind the clock, at most %d are allowed: %v", behind, bound.Behind, r)
}

// A ClientReport is how one client was served.
type ClientReport struct {
	Client  string
	IDs     int64
	Failed  int
	Silence time.Duration // the longest time without an ID
	At      time.Duration // when it began
	Away    time.Duration // all silences of more than a second together
	Err     error         // the latest failure
}

// Clients returns how each client was served between two times, by name. A client that
// received nothing was silent all the time.
func (h *History) Clients(from, to time.Duration) []ClientReport {
	reports, last := map[string]*ClientReport{}, map[string]time.Duration{}
	get := func(name string) *ClientReport {
		if reports[name] == nil {
			reports[name], last[name] = &ClientReport{Client: name}, from
		}
		return reports[name]
	}
	silent := func(c *ClientReport, until time.Duration) {
		since := last[c.Client]
		if until-since > c.Silence {
			c.Silence, c.At = until-since, since
		}
		if until-since > time.Second {
			c.Away += until - since
		}
		last[c.Client] = until
	}
	inside := func(end time.Duration) bool { return from <= end && end <= to }
	for _, r := range h.sorted(byEnd, func(r *Receipt) bool { return inside(r.End) }) {
		c := get(r.Client)
		c.IDs += r.Range.Len()
		silent(c, r.End)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.failures {
		if inside(f.End) {
			c := get(f.Client)
			c.Failed, c.Err = c.Failed+max(f.Calls, 1), f.Err
		}
	}
	var all []ClientReport
	for _, c := range reports {
		silent(c, to)
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b ClientReport) int { return cmp.Compare(a.Client, b.Client) })
	return all
}

// CheckSilence reports a client that received nothing for longer than most, between two
// times. Every one of names must have been served.
func (h *History) CheckSilence(from, to, most time.Duration, names ...string) error {
	served := map[string]bool{}
	for _, c := range h.Clients(from, to) {
		if served[c.Client] = c.IDs > 0; c.Silence > most {
			return fmt.Errorf("%s received nothing for %v from %v on, at most %v are allowed; %d calls failed, the last one with: %v",
				c.Client, c.Silence, c.At, most, c.Failed, c.Err)
		}
	}
	for _, name := range names {
		if !served[name] {
			return fmt.Errorf("%s received nothing between %v and %v", name, from, to)
		}
	}
	return nil
}

// A Life holds the grants of one server process and the ranges it gave back, of one space.
type Life struct {
	Server            string
	Granted, Returned []leaf.Range
	Issued            int64 // by its own count; 0: what clients received
	Crashed           bool  // else it stopped in good order

	// Budget is the most IDs that a crash may cost. Where only clients counted, it has to leave
	// room for answers on their way.
	Budget int64
}

// CheckLoss reports a life that lost more IDs than its budget: those granted to
// it, and neither given back nor issued.
func (h *History) CheckLoss(space string, lives ...Life) error {
	received := map[string]int64{}
	h.mu.Lock()
	for i := range h.receipts {
		if r := &h.receipts[i]; r.Space == space {
			received[r.Server] += r.Range.Len()
		}
	}
	h.mu.Unlock()
	for _, l := range lives {
		lost := total(l.Granted) - total(l.Returned) - cmp.Or(l.Issued, received[l.Server])
		if l.Crashed && lost > l.Budget {
			return fmt.Errorf("the crash of %s cost %d IDs of %s, at most %d are allowed", l.Server, lost, space, l.Budget)
		}
	}
	return nil
}

func total(ranges []leaf.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}
