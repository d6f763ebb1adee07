package bench_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/segment"
)

// A fleet is many servers on one store. Buffers of different tags or servers do not influence each
// other while the store keeps up, so the test simulates a sample; each buffer counts by its weight.
type fleet struct {
	nodes, tags int
	spread      int     // servers that serve a tag
	demand      float64 // IDs a second of all tags together; the k-th tag has a share of 1/k
	sample      int     // simulated buffers
	step        int64

	warm, run, outage time.Duration
}

// A sampled is one buffer of a fleet.
type sampled struct {
	rate   float64 // IDs a second
	weight float64 // how many buffers it represents
}

// buffers returns the sample: the most wanted tags each, the others by ranks that grow.
func (f fleet) buffers() []sampled {
	harmonic := math.Log(float64(f.tags)) + 0.5772
	growth := math.Pow(float64(f.tags), 1/float64(f.sample))
	var all []sampled
	for rank := 1.0; rank <= float64(f.tags); {
		next := math.Ceil(max(rank+1, rank*growth))
		last := min(next, float64(f.tags)+1)
		share := math.Log((last - .5) / (rank - .5)) // of the ranks from rank to last-1
		rate := f.demand * share / harmonic / (last - rank) / float64(f.spread)
		all = append(all, sampled{rate: rate, weight: (last - rank) * float64(f.spread)})
		rank = next
	}
	return all
}

// beyondStock is the demand of an outage beyond a stock that is nine tenths full. At that level a
// buffer refills up to the outage budget or the loss budget.
func (f fleet) beyondStock() (lack float64) {
	for _, s := range f.buffers() {
		wanted := s.rate * f.outage.Seconds()
		lack += s.weight * (wanted - 0.9*min(wanted, s.rate*segment.DefaultOutageBudget.Seconds(), segment.DefaultMaxStock))
	}
	return lack
}

// An outcome sums up all buffers of a fleet.
type outcome struct {
	calls          float64 // of the store, a second
	peak           float64 // the same in the second that had most, after the outage
	atRisk         float64 // IDs in memory, which a crash of all servers would lose
	wanted, failed float64 // requested IDs, and failed requests, during the outage
}

// A fleetStore counts its calls and fails them while it is down.
type fleetStore struct {
	next  atomic.Int64
	calls atomic.Int64
	step  int64
	down  *atomic.Bool
}

func (s *fleetStore) Advance(_ context.Context, _ string, n int64) (segment.Grant, error) {
	s.calls.Add(1)
	if s.down.Load() {
		return segment.Grant{}, errors.New("the store is down")
	}
	if n == 0 {
		n = s.step
	}
	end := s.next.Add(n)
	return segment.Grant{Range: leaf.Range{Start: end - n, End: end}, Step: s.step}, nil
}

func (s *fleetStore) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(func(segment.Tag, error) bool) {}
}

// simulate runs the real buffers of a fleet in virtual time.
func (f fleet) simulate(ctx context.Context) outcome {
	var down atomic.Bool
	var mu sync.Mutex
	var wg sync.WaitGroup
	var o outcome
	var after [3]float64 // calls in the first seconds after the outage
	for _, s := range f.buffers() {
		wg.Go(func() {
			r := f.runBuffer(ctx, s, &down)
			mu.Lock()
			defer mu.Unlock()
			o.calls += r.calls * s.weight
			o.atRisk += r.atRisk * s.weight
			o.wanted += r.wanted * s.weight
			o.failed += r.failed * s.weight
			for i := range after {
				after[i] += r.after[i] * s.weight
			}
		})
	}
	time.Sleep(f.warm + f.run)
	down.Store(true)
	time.Sleep(f.outage)
	down.Store(false)
	wg.Wait()
	o.peak = max(after[0], after[1], after[2])
	return o
}

// A bufferRun is what one buffer came to.
type bufferRun struct {
	calls, atRisk, wanted, failed float64
	after                         [3]float64
}

func (f fleet) runBuffer(ctx context.Context, s sampled, down *atomic.Bool) (r bufferRun) {
	store := &fleetStore{step: f.step, down: down}
	b := segment.NewBuffer(store, bench.Tag, nil)
	defer b.Close(ctx)
	began := time.Now()
	due := 0.0
	// until takes the IDs that are due up to a time, once a second.
	until := func(end time.Duration) (wanted, failed float64) {
		for time.Since(began) < end {
			time.Sleep(time.Second)
			for due += s.rate; due >= 1; {
				n := min(int(due), 1_000_000)
				due -= float64(n)
				wanted += float64(n)
				if _, err := b.Take(ctx, nil, n); err != nil {
					failed += float64(n)
				}
			}
		}
		return wanted, failed
	}
	until(f.warm)
	before := store.calls.Load()
	until(f.warm + f.run)
	r.calls = float64(store.calls.Load()-before) / f.run.Seconds()
	r.atRisk = float64(b.Stats().Stock)
	r.wanted, r.failed = until(f.warm + f.run + f.outage)
	for i := range r.after {
		before = store.calls.Load()
		until(f.warm + f.run + f.outage + time.Duration(i+1)*time.Second)
		r.after[i] = float64(store.calls.Load() - before)
	}
	return r
}

// TestFleet simulates 1,000 servers and a million tags on one store in virtual time: the
// buffers are the real code, the policy the default one. In the lab it takes longer, and
// compares a small fleet with real servers on a real store.
func TestFleet(t *testing.T) {
	lab := os.Getenv("LEAF_LAB") != ""
	var table strings.Builder
	table.WriteString("\n| servers, tags, servers a tag, IDs a second | step | store calls a second | most after an outage |" +
		" IDs at risk | failed in a 10 min outage |\n|---|---|---|---|---|---|\n")
	fleets := []fleet{{nodes: 1000, tags: 1_000_000, spread: 10, demand: 10e6, step: 1000}}
	if lab {
		fleets = append(fleets,
			fleet{nodes: 1000, tags: 1_000_000, spread: 10, demand: 10e6, step: 100_000},
			fleet{nodes: 1000, tags: 1_000_000, spread: 1000, demand: 10e6, step: 1000},
			fleet{nodes: 100, tags: 100_000, spread: 10, demand: 1e6, step: 1000},
			fleet{nodes: 10, tags: 1000, spread: 10, demand: 100e3, step: 1000})
	}
	for _, f := range fleets {
		f.sample, f.warm, f.run, f.outage = 40, 30*time.Minute, 20*time.Minute, 10*time.Minute
		if lab {
			f.sample, f.warm, f.run = 150, 2*time.Hour, time.Hour
		}
		synctest.Test(t, func(t *testing.T) {
			o := f.simulate(t.Context())
			fmt.Fprintf(&table, "| %d, %d, %d, %.0f | %d | %.0f | %.0f | %.3g | %.2g %% |\n", f.nodes, f.tags, f.spread, f.demand,
				f.step, o.calls, o.peak, o.atRisk, 100*o.failed/o.wanted)
			// A step at a time where these are small, else once a minute: a tenth of the budget.
			if most := f.demand/float64(f.step) + float64(f.tags*f.spread)/60; o.calls > 1.5*most {
				t.Errorf("%.0f calls a second: more than one a step and one a minute and buffer, which is %.0f", o.calls, most)
			}
			if most := f.beyondStock(); o.failed > 1.05*most {
				t.Errorf("%.0f of %.0f IDs failed, and the stocks, nine tenths full, lack %.0f", o.failed, o.wanted, most)
			}
		})
	}
	if lab {
		counted := real.serve(t)
		synctest.Test(t, func(t *testing.T) {
			virtual := real.simulate(t.Context())
			head := fmt.Sprintf("| %d, %d, %d, %.0f; the first %v", real.nodes, real.tags, real.spread, real.demand, real.run)
			fmt.Fprintf(&table, "%s, simulated | %d | %.1f | | %.3g | |\n", head, real.step, virtual.calls, virtual.atRisk)
			fmt.Fprintf(&table, "%s, real servers on a MariaDB | %d | %.1f | | | |\n", head, real.step, counted)
			if counted > 2*virtual.calls || virtual.calls > 2*counted {
				t.Errorf("%.1f calls a second were counted, %.1f predicted", counted, virtual.calls)
			}
		})
	}
	t.Log(table.String())
}
