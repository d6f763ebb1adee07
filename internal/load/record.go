package load

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// A record is what some of the clients have measured.
type record struct {
	mu        sync.Mutex
	latencies *hdr.Histogram // nanoseconds
	failures  map[string]*ErrorCount

	all, allFailed int64         // requests answered, the warm-up included
	sent, failed   int64         // requests whose time was measured
	missed         int64         // unsent due requests
	ids            int64         // in the answers to the measured ones
	last           time.Duration // when the last measured one succeeded
}

const (
	longestLatency = time.Hour
	digits         = 3 // significant digits of a latency
	errorKinds     = 20
)

func newRecord() *record {
	return &record{latencies: hdr.New(1, int64(longestLatency), digits), failures: map[string]*ErrorCount{}}
}

// count records calls that left together, with their latency from the due time.
func (r *record) count(calls []*Call, took, now time.Duration, measured bool) {
	var good, late, ids int64
	for _, c := range calls {
		switch {
		case c.Err == nil:
			good++
			ids += int64(c.Count)
		case measured && r.fail(c.Err) == kindTimeout:
			late++
		}
	}
	sent := int64(len(calls))
	r.all += sent
	r.allFailed += sent - good
	if !measured {
		return
	}
	r.sent += sent
	r.failed += sent - good
	r.ids += ids
	if good > 0 {
		r.last = max(r.last, now)
	}
	if good+late > 0 {
		r.latency(took, good+late)
	}
}

func (r *record) latency(took time.Duration, n int64) {
	took = min(max(took, 1), longestLatency)
	_ = r.latencies.RecordValues(int64(took), n) // any such value fits
}

// fail counts an error by its kind, which it returns. It bounds the number of kinds: further ones
// count as other errors.
func (r *record) fail(err error) string {
	kind, text := kindOf(err)
	if r.failures[kind] == nil && len(r.failures) >= errorKinds {
		kind = kindOther
	}
	if r.failures[kind] == nil {
		r.failures[kind] = &ErrorCount{Kind: kind, Example: text}
	}
	r.failures[kind].Count++
	return kind
}

func (r *record) unsent(waited time.Duration, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed += n
	r.latency(waited, n)
}

func (r *record) progress() (answered, failed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all, r.allFailed
}

func merge(records []*record) *record {
	sum := newRecord()
	for _, r := range records {
		sum.latencies.Merge(r.latencies)
		sum.all, sum.allFailed = sum.all+r.all, sum.allFailed+r.allFailed
		sum.sent, sum.failed, sum.missed = sum.sent+r.sent, sum.failed+r.failed, sum.missed+r.missed
		sum.ids, sum.last = sum.ids+r.ids, max(sum.last, r.last)
		for kind, f := range r.failures {
			if known := sum.failures[kind]; known != nil {
				known.Count += f.Count
			} else {
				sum.failures[kind] = f
			}
		}
	}
	return sum
}

// errors lists the failures, the most frequent ones first.
func (r *record) errors() []ErrorCount {
	list := []ErrorCount{}
	for _, kind := range slices.Sorted(maps.Keys(r.failures)) {
		list = append(list, *r.failures[kind])
	}
	slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
