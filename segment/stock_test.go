package segment_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

const loadTick = 10 * time.Millisecond

// A load takes IDs in virtual time, as many as come due, and measures what callers notice.
type load struct {
	b        *segment.Buffer
	due      float64
	failed   int
	waited   time.Duration // for the store, in all
	lastWait time.Time
}

// run takes rate(t) IDs a second for d, with t the time since the beginning. It takes the IDs that
// become due during a waiting call after it.
func (l *load) run(ctx context.Context, d time.Duration, rate func(t time.Duration) float64) {
	const batch = 20
	begin := time.Now()
	last := begin
	for time.Since(begin) < d {
		time.Sleep(loadTick)
		now := time.Now()
		l.due += rate(now.Sub(begin)) * now.Sub(last).Seconds()
		last = now
		for ; l.due >= 1; l.due -= min(batch, math.Floor(l.due)) {
			start := time.Now()
			if _, err := l.b.Take(ctx, nil, int(min(batch, l.due))); err != nil {
				l.failed++
			}
			if took := time.Since(start); took > 0 {
				l.waited += took
				l.lastWait = time.Now()
			}
		}
	}
}

func constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// granted is how many IDs a store has granted.
func granted(store *drivertest.Faulty) (n int64) {
	for _, r := range store.Granted("order") {
		n += r.Len()
	}
	return n
}

// checkBound fails the test if the store granted more than twice the issued IDs, plus two steps.
func checkBound(t *testing.T, store *drivertest.Faulty, step int64, buffers ...*segment.Buffer) {
	t.Helper()
	most := int64(0)
	for _, b := range buffers {
		most += 2*b.Stats().Issued + 2*step
	}
	if n := granted(store); n > most {
		t.Errorf("%d IDs were granted, at most %d are allowed", n, most)
	}
}

// coldStart is how long callers may wait for a store in all while the stock of an unused tag grows
// to the need of the rate: two calls for each doubling, as one of them left before the callers used
// much of the stock.
func coldStart(rate float64, latency time.Duration, step int64) time.Duration {
	doublings := math.Log2(max(1, rate*(latency+loadTick).Seconds()/float64(step)))
	return time.Duration(float64(latency) * (5 + 2*doublings))
}

var (
	stockLatencies = []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond}
	stockSteps     = []int64{10, 1000}
)

// Callers wait for the store only while a tag is new to the process, and no call fails; the
// stock grows to the use of one outage budget, and no further.
func TestStockFollowsUse(t *testing.T) {
	testserver.Long(t)
	ramp := func(t time.Duration) float64 { return 10 * math.Pow(2, min(10, t.Minutes())) }
	for name, c := range map[string]struct {
		rate func(time.Duration) float64
		top  float64 // of the rate while the stock is small
	}{
		"10 a second":           {constant(10), 10},
		"1000 a second":         {constant(1000), 1000},
		"20,000 a second":       {constant(20_000), 20_000},
		"doubling every minute": {ramp, 20},
		"bursts": {func(t time.Duration) float64 {
			if t > time.Minute && t%(5*time.Minute) < 10*time.Second {
				return 5000
			}
			return 50
		}, 50},
		"a burst at once": {func(t time.Duration) float64 {
			if t > 2*time.Second && t < 10*time.Second {
				return 5000
			}
			return 50
		}, 5000},
	} {
		for _, latency := range stockLatencies {
			for _, step := range stockSteps {
				t.Run(fmt.Sprintf("%s, %v, step %d", name, latency, step), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						store := newStore(t, 1, step)
						store.Set(drivertest.Fault{Latency: latency})
						b := segment.NewBuffer(store, "order", nil)
						defer closeBuffer(t, b)
						begin := time.Now()
						l := &load{b: b}
						l.run(t.Context(), 20*time.Minute, c.rate)
						synctest.Wait()
						st := b.Stats()
						t.Logf("%d IDs, %d calls, callers waited %v in all, last after %v", st.Issued, st.Calls, l.waited, l.lastWait.Sub(begin))
						if most := coldStart(c.top, latency, step); l.failed > 0 || l.waited > most {
							t.Errorf("%d calls failed, callers waited %v for the store, at most %v wanted", l.failed, l.waited, most)
						}
						if !l.lastWait.Before(begin.Add(30 * time.Second)) {
							t.Errorf("a caller waited after %v", l.lastWait.Sub(begin))
						}
						checkBound(t, store, step, b)
					})
				})
			}
		}
	}
}

// In steady use the stock lasts as long as the outage budget, after it has passed once; before, as
// long as the tag has been used.
func TestStockGrowsWithTheTimeOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := segment.NewBuffer(newStore(t, 1, 10), "order", nil)
		defer closeBuffer(t, b)
		l := &load{b: b}
		for minute := 1; minute <= 30; minute++ {
			l.run(t.Context(), time.Minute, constant(100))
			synctest.Wait()
			want := time.Duration(min(minute, 10)) * time.Minute
			if lasts := time.Duration(b.Stats().Stock) * time.Second / 100; lasts < want*9/10-time.Second || lasts > want*21/20+time.Second {
				t.Errorf("after %d minutes the stock lasts %v", minute, lasts)
			}
		}
	})
}

// An idle tag keeps its stock. Before the stock ends after all it is topped up, however large the
// last allocation was.
func TestIdleStockIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 100)
		store.Set(drivertest.Fault{Latency: 200 * time.Millisecond})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		l := &load{b: b}
		l.run(t.Context(), 10*time.Second, constant(10_000))
		time.Sleep(time.Second) // for the calls under way
		stock := b.Stats().Stock
		time.Sleep(24 * time.Hour)
		if kept := b.Stats().Stock; kept != stock || stock < 80_000 {
			t.Errorf("%d IDs in memory after a day, %d before", kept, stock)
		}
		for range stock + 1000 {
			time.Sleep(10 * time.Second)
			start := time.Now()
			next(t, b)
			if time.Since(start) > 0 {
				t.Fatalf("a caller waited with %d IDs issued", b.Stats().Issued)
			}
		}
		if left := b.Stats().Stock; left > 200 {
			t.Errorf("%d IDs in memory, for 60 in ten minutes", left)
		}
	})
}

// Servers that share a tag hold a stock each, for their own part of the IDs.
func TestStockOfEightServers(t *testing.T) {
	for _, latency := range stockLatencies {
		synctest.Test(t, func(t *testing.T) {
			const step = 100
			store := newStore(t, 1, step)
			store.Set(drivertest.Fault{Latency: latency})
			var loads []*load
			var buffers []*segment.Buffer
			for range 8 {
				b := segment.NewBuffer(store, "order", nil)
				defer func() { _ = b.Close(t.Context()) }() // others have taken IDs since
				loads, buffers = append(loads, &load{b: b}), append(buffers, b)
			}
			var wg sync.WaitGroup
			for i, l := range loads {
				wg.Go(func() { l.run(t.Context(), 15*time.Minute, constant(float64(50*(i+1)))) })
			}
			wg.Wait()
			for i, l := range loads {
				if most := coldStart(float64(50*(i+1)), latency, step); l.failed > 0 || l.waited > most {
					t.Errorf("%v, server %d: %d calls failed, callers waited %v, at most %v wanted", latency, i, l.failed, l.waited, most)
				}
			}
			checkBound(t, store, step, buffers...)
		})
	}
}

// Many callers at once. Each asks for its next ID when it has one.
func TestStockOfManyCallers(t *testing.T) {
	for _, latency := range stockLatencies {
		synctest.Test(t, func(t *testing.T) {
			const callers, each, step = 64, 500, 10
			store := newStore(t, 1, step)
			store.Set(drivertest.Fault{Latency: latency})
			b := segment.NewBuffer(store, "order", nil)
			defer closeBuffer(t, b)
			begin := time.Now()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range each {
						if _, err := b.Next(t.Context()); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			took := time.Since(begin)
			t.Logf("%v: %d IDs in %v, %d calls", latency, callers*each, took, store.Calls(drivertest.OpAdvance))
			if most := coldStart(callers*each/latency.Seconds(), latency, step); took > most { // all at once
				t.Errorf("%v: %d IDs took %v, at most %v wanted", latency, callers*each, took, most)
			}
			synctest.Wait()
			checkBound(t, store, step, b)
		})
	}
}

// A below is a store that takes ranges off the stock of a set, as a relay or a client does.
type below struct {
	segment.Store
	set *segment.Set
}

func (s *below) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.set.Server().Advance(ctx, tag, n, "")
}

// Levels multiply: for a client behind a relay behind a server the store grants at most eight times
// the issued IDs, and a multiple of the step.
func TestStockOfLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100
		store := newStore(t, 1, step)
		store.Set(drivertest.Fault{Latency: 20 * time.Millisecond})
		upstream := segment.Store(store)
		for range 2 {
			set := segment.NewSet(upstream, nil)
			defer func() { _ = set.Close(t.Context()) }()
			upstream = &below{store, set}
		}
		b := segment.NewBuffer(upstream, "order", nil)
		defer func() { _ = b.Close(t.Context()) }()
		l := &load{b: b}
		for range 20 {
			l.run(t.Context(), time.Minute, constant(500))
			synctest.Wait()
			issued := b.Stats().Issued
			if n := granted(store); n > 8*issued+14*step || l.failed > 0 {
				t.Errorf("the store granted %d IDs for %d; %d calls failed", n, issued, l.failed)
			}
		}
		if most := 2 * coldStart(500, 20*time.Millisecond, step); l.waited > most {
			t.Errorf("callers waited %v", l.waited)
		}
	})
}

// A receiver is a store that counts the IDs whose grant arrived.
type receiver struct {
	segment.Store
	n atomic.Int64
}

func (r *receiver) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	g, err := r.Store.Advance(ctx, tag, n)
	r.n.Add(g.Range.Len())
	return g, err
}

// However callers, the network and the store behave, a process gets at most twice its issued IDs,
// plus two steps. A call with a lost answer costs all its IDs.
func TestStockBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		step := rapid.Int64Range(1, 300).Draw(rt, "step")
		opts := &segment.Options{
			MaxStock:     rapid.SampledFrom([]int64{500, 5000, 0}).Draw(rt, "maxStock"),
			OutageBudget: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 0}).Draw(rt, "outageBudget"),
		}
		type action struct {
			n       int
			lend    bool
			timeout time.Duration // of the call
			pause   time.Duration // before the next one
			fault   drivertest.Fault
		}
		actions := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) action {
			return action{
				n:       rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 500)).Draw(rt, "n"),
				lend:    rapid.IntRange(0, 4).Draw(rt, "lend") == 0,
				timeout: time.Duration(rapid.IntRange(0, 300).Draw(rt, "timeout")) * time.Millisecond,
				pause:   time.Duration(rapid.SampledFrom([]int{0, 0, 1, 50, 2000, 70_000}).Draw(rt, "pause")) * time.Millisecond,
				fault: rapid.SampledFrom([]drivertest.Fault{
					{}, {Latency: time.Millisecond}, {Latency: 50 * time.Millisecond}, {Latency: 200 * time.Millisecond}, {Before: errDown}, {After: errDown},
				}).Draw(rt, "fault"),
			}
		}), 1, 80).Draw(rt, "actions")
		var found string
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 0, step)
			received := &receiver{Store: store}
			b := segment.NewBuffer(received, "order", opts)
			defer closeBuffer(t, b)
			var wg sync.WaitGroup
			for i, a := range actions {
				store.Set(a.fault)
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), a.timeout)
					defer cancel()
					if a.lend {
						_, _ = b.Advance(ctx, int64(a.n), "")
					} else {
						_, _ = b.Take(ctx, nil, a.n)
					}
				})
				time.Sleep(a.pause)
				synctest.Wait()
				if st := b.Stats(); found == "" && received.n.Load() > 2*st.Issued+2*step {
					found = fmt.Sprintf("after action %d: %d IDs were received, and %d issued", i, received.n.Load(), st.Issued)
				}
			}
			wg.Wait()
		})
		if found != "" {
			rt.Fatal(found)
		}
	})
}

// A caller who gives up leaves no growing memory behind: later callers with an equally large batch,
// and as little time, get it in the end.
func TestAbandonedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Latency: 200 * time.Millisecond})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		for tries := 1; ; tries++ {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			ranges, err := b.Take(ctx, nil, 2000)
			cancel()
			time.Sleep(time.Second)
			checkBound(t, store, 10, b)
			if err == nil {
				t.Logf("%d tries for %v", tries, ranges)
				return
			}
			if tries == 500 {
				t.Fatal("no batch was served")
			}
		}
	})
}
