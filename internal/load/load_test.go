package load

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeServer hands out ascending IDs, each answer after a while.
type fakeServer struct {
	answer func(ctx context.Context, f *fakeServer, c *Call) // nil: the next IDs
	takes  time.Duration
	next   atomic.Int64
	calls  atomic.Int64
	start  time.Time

	stallFrom, stallUntil time.Duration // nothing is answered in between
}

func (f *fakeServer) Open() Conn   { return f }
func (f *fakeServer) Close() error { return nil }

func (f *fakeServer) Do(ctx context.Context, calls []*Call) {
	now := time.Since(f.start)
	if f.stallFrom <= now && now < f.stallUntil {
		time.Sleep(f.stallUntil - now)
	}
	time.Sleep(f.takes)
	for _, c := range calls {
		f.calls.Add(1)
		if f.answer != nil {
			f.answer(ctx, f, c)
		} else {
			f.give(c)
		}
	}
}

func (f *fakeServer) give(c *Call) {
	end := f.next.Add(int64(c.Count))
	c.Err = c.IDs.addRange(end-int64(c.Count), end)
}

// options are those of a run over f. Time is that of the bubble.
func (f *fakeServer) options() Options {
	f.start = time.Now()
	return Options{
		Target: f, Keys: []Key{{Name: "order", Space: "order"}}, Count: 1, Clients: 4, Pipeline: 1,
		Duration: 10 * time.Second, Memory: 1 << 30, sleep: time.Sleep,
	}
}

func mustRun(t *testing.T, ctx context.Context, opts Options) *Result {
	t.Helper()
	res, err := Run(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A server that stalls for a second shows as a second where requests are due at a rate,
// although four were under way.
func TestStallShowsInOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{takes: time.Millisecond, stallFrom: 4 * time.Second, stallUntil: 5 * time.Second}
		opts := f.options()
		opts.Rate = 1000
		res := mustRun(t, t.Context(), opts)
		if !res.Latency.Corrected || res.Sent != 10_000 || res.Succeeded != 10_000 || res.Unsent != 0 || res.RequestRate != 1000 {
			t.Errorf("%+v", res)
		}
		// A tenth of the requests was due in the stall; the backlog is worked off at 3000 a second.
		if l := res.Latency; l.P50 > 2*time.Millisecond || l.P99 < 850*time.Millisecond || l.P99 > 950*time.Millisecond || l.Max < 995*time.Millisecond {
			t.Errorf("%+v", l)
		}
	})
}

// The closed loop sends nothing meanwhile, and its p99 does not tell.
func TestStallHidesInClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{takes: time.Millisecond, stallFrom: 4 * time.Second, stallUntil: 5 * time.Second}
		res := mustRun(t, t.Context(), f.options())
		if res.Latency.Corrected || res.Sent < 4*9000 || res.Sent > 4*9000+4 || res.Unsent != 0 {
			t.Errorf("%+v", res)
		}
		if l := res.Latency; l.P999 > 2*time.Millisecond || l.Max < time.Second {
			t.Errorf("%+v", l)
		}
	})
}

// Unsent due requests count with their wait.
func TestUnsentRequestsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{takes: time.Millisecond, stallFrom: 5 * time.Second, stallUntil: 30 * time.Second}
		opts := f.options()
		opts.Rate = 1000
		res := mustRun(t, t.Context(), opts)
		if res.Sent+res.Unsent != 10_000 || res.Unsent < 4990 {
			t.Errorf("sent %d, unsent %d", res.Sent, res.Unsent)
		}
		if l := res.Latency; l.P90 < 3*time.Second || l.P90 > 5*time.Second {
			t.Errorf("%+v", l)
		}
	})
}

// A request that runs into its time-out counts with it, another failure does not.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{takes: time.Millisecond}
		f.answer = func(_ context.Context, f *fakeServer, c *Call) {
			switch n := f.calls.Load(); {
			case n%10 == 3:
				c.Err = failure("HTTP 503", "no IDs")
			case n%10 == 7:
				time.Sleep(3 * time.Second)
				c.Err = context.DeadlineExceeded
			case n%10 == 9:
				c.Count, c.IDs = 1, IDs{} // no IDs in it
			default:
				f.give(c)
			}
		}
		opts := f.options()
		opts.Clients, opts.Duration = 1, 30*time.Second
		res := mustRun(t, t.Context(), opts)
		got := map[string]int64{}
		for _, e := range res.Errors {
			got[e.Kind] = e.Count
		}
		if got["HTTP 503"] != 10 || got["time-out"] != 10 || got["wrong number of IDs"] < 9 || len(got) != 3 || res.Failed+res.Succeeded != res.Sent {
			t.Errorf("%v of %+v", got, res)
		}
		if res.Errors[0].Example == "" || res.Latency.Max < 3*time.Second {
			t.Errorf("%+v", res)
		}
	})
}

func TestWarmUpIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{takes: time.Millisecond, stallUntil: time.Second}
		opts := f.options()
		opts.Rate, opts.Clients, opts.WarmUp = 100, 20, 2*time.Second
		res := mustRun(t, t.Context(), opts)
		if res.Sent != 1000 || res.Latency.Max > 2*time.Millisecond {
			t.Errorf("%+v", res)
		}
		if res.Check.Checked != f.next.Load() || res.Check.Checked != 1201 { // and the first one
			t.Errorf("checked %d of %d", res.Check.Checked, f.next.Load())
		}
	})
}

func TestPipelineAndKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{takes: time.Millisecond}
		asked := map[string]int{}
		f.answer = func(_ context.Context, f *fakeServer, c *Call) { asked[c.Key]++; f.give(c) }
		opts := f.options()
		opts.Keys = []Key{{"a", "a"}, {"b", "b"}, {"c", "c"}}
		opts.Rate, opts.Clients, opts.Pipeline, opts.Count = 1000, 1, 10, 5
		res := mustRun(t, t.Context(), opts)
		if res.Sent != 10_000 || res.IDs != 50_000 || res.IDRate != 5000 || res.Check.Checked != 50_015 {
			t.Errorf("%+v", res)
		}
		if asked["a"] != 3335 || asked["b"] != 3334 || asked["c"] != 3334 {
			t.Errorf("%v", asked)
		}
	})
}

// The end of the context ends the run early, with the results so far.
func TestInterrupt(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeServer{takes: time.Millisecond}
			opts := f.options()
			opts.Rate = rate
			var last Progress
			opts.Progress = func(p Progress) { last = p }
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			res := mustRun(t, ctx, opts)
			if took := time.Since(f.start); took > 3100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if !res.Interrupted || res.Sent < 2900 || res.RequestRate < 990 || last.Requests < 2500 {
				t.Errorf("rate %v: %+v, %+v", rate, res, last)
			}
		})
	}
}

func TestFirstRequestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: func(_ context.Context, _ *fakeServer, c *Call) { c.Err = failure("HTTP 404", "unknown tag") }}
		_, err := Run(t.Context(), f.options())
		said, ok := errors.AsType[*Failure](err)
		if !ok || !strings.HasPrefix(err.Error(), "the first request failed: ") || said.Kind != "HTTP 404" || f.calls.Load() != 1 {
			t.Errorf("%v after %d calls", err, f.calls.Load())
		}
	})
}

// Clients whose answers come at once take turns, as they would on machines of their own.
func TestClientsTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	target := &quickServer{fake: new(fakeServer)}
	opts := target.fake.options()
	opts.Target, opts.Duration, opts.sleep = target, 50*time.Millisecond, nil
	mustRun(t, t.Context(), opts)
	if target.calls == 0 || target.switches < target.calls/2 {
		t.Errorf("%d calls, and another client next only %d times", target.calls, target.switches)
	}
}

// A quickServer answers at once, and counts how often a call is of another client than the one before.
type quickServer struct {
	fake            *fakeServer
	mu              sync.Mutex
	last            *quickConn
	calls, switches int
}

func (s *quickServer) Open() Conn { return &quickConn{server: s} }

type quickConn struct{ server *quickServer }

func (c *quickConn) Close() error { return nil }

func (c *quickConn) Do(_ context.Context, calls []*Call) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.last != c {
		s.last = c
		s.switches++
	}
	for _, call := range calls {
		s.fake.give(call)
	}
}
