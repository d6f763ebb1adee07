package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// bounds are the upper ends of the latency buckets; the last bucket is open.
var bounds = [...]time.Duration{
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// maxRecorders is how many recorders a front end has; more connections than that share them.
// It is a power of two.
const maxRecorders = 32

// FrontEnds are the requests of each front end. Its methods are safe for concurrent use. A nil
// FrontEnds counts nothing.
type FrontEnds struct {
	causes []string

	mu    sync.Mutex
	named map[string]*Requests
}

// NewFrontEnds returns counters whose errors have one of the causes.
func NewFrontEnds(causes []string) *FrontEnds {
	return &FrontEnds{causes: causes, named: make(map[string]*Requests)}
}

// Of returns the requests of a front end. Front ends share those of one name.
func (f *FrontEnds) Of(name string) *Requests {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.named[name] == nil {
		f.named[name] = NewRequests(f.causes)
	}
	return f.named[name]
}

func (f *FrontEnds) all() map[string]*Requests {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.named)
}

// Requests counts the requests of one front end. Its methods are safe for concurrent use. A
// nil Requests counts nothing.
type Requests struct {
	recorders [maxRecorders]Recorder
	causes    map[string]*atomic.Int64 // never written after NewRequests
	unknown   atomic.Int64             // errors of any other cause

	mu      sync.Mutex
	seconds float64 // total latency, without the recorders' latest counts
}

// NewRequests returns counters whose errors have one of the causes.
func NewRequests(causes []string) *Requests {
	r := &Requests{causes: make(map[string]*atomic.Int64, len(causes))}
	for _, cause := range causes {
		r.causes[cause] = new(atomic.Int64)
	}
	start := time.Now()
	for i := range r.recorders {
		r.recorders[i].start = start
	}
	return r
}

// Recorder returns the recorder of the connection, or event loop, with that number.
func (r *Requests) Recorder(number uint) *Recorder {
	if r == nil {
		return nil
	}
	return &r.recorders[number%maxRecorders]
}

// RecorderOf returns the recorder of the connection with that remote address. The port, at its
// end, differs between connections.
func (r *Requests) RecorderOf(addr string) *Recorder {
	if len(addr) < 2 {
		return r.Recorder(0)
	}
	return r.Recorder(10*uint(addr[len(addr)-2]) + uint(addr[len(addr)-1]))
}

// Failed counts a request with an error as its answer.
func (r *Requests) Failed(cause string) {
	if r == nil {
		return
	}
	if n, ok := r.causes[cause]; ok {
		n.Add(1)
		return
	}
	r.unknown.Add(1)
}

// took returns how many seconds all requests took. It empties the sums of the recorders:
// nanoseconds of many requests at a time would exceed an int64 within days.
func (r *Requests) took() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.recorders {
		r.seconds += time.Duration(r.recorders[i].sum.Swap(0)).Seconds()
	}
	return r.seconds
}

// A Recorder counts requests and how long they took. It is fastest where one goroutine at a
// time uses it. A nil Recorder counts nothing.
type Recorder struct {
	start   time.Time
	buckets [len(bounds) + 1]atomic.Int64
	sum     atomic.Int64 // nanoseconds since the latest scrape
	_       [64]byte     // the next one has its own cache lines
}

// Now returns the time by the recorder's own clock, which is cheaper than [time.Now].
func (r *Recorder) Now() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.start)
}

// Done counts n requests that arrived at the same time, by [Recorder.Now], and have been
// answered now.
func (r *Recorder) Done(arrived time.Duration, n int) {
	if r == nil || n < 1 {
		return
	}
	r.took(time.Since(r.start)-arrived, n)
}

func (r *Recorder) took(took time.Duration, n int) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	r.buckets[i].Add(int64(n))
	r.sum.Add(int64(took) * int64(n))
}
