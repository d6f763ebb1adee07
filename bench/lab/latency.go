package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/segment"
)

// slowStore is a store of one counter that takes its time, and has grants of a certain size.
type slowStore struct {
	next  atomic.Int64
	calls atomic.Int64
	step  int64
	delay time.Duration
}

func (s *slowStore) Advance(ctx context.Context, _ string, n int64) (segment.Grant, error) {
	if n == 0 || n > s.step {
		n = s.step
	}
	if s.calls.Add(1) > 1 { // the first one comes before the measurement
		time.Sleep(s.delay)
	}
	end := s.next.Add(n)
	return segment.Grant{Range: leaf.Range{Start: end - n, End: end}, Step: s.step}, ctx.Err()
}

func (s *slowStore) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(func(segment.Tag, error) bool) {}
}

// A change is one way for segments to change under the callers.
type change struct {
	key   string
	name  string
	every time.Duration // 0: never
	delay time.Duration // of the store

	calls int64
	took  map[float64]figure // ns, by quantile
}

// quantiles shown in the table; keyQuantile is the one with a goal.
var quantiles = []float64{.5, .9, .99, .999, .9999, 1}

const keyQuantile = .999

const latencyRun = time.Second

// latency shows whether callers notice a change of segments, or a store call of 100 ms: Next
// in an open loop, at half the rate that the loop reaches.
func latency(ctx context.Context, l *lab) (report, error) {
	rate, err := halfRate(ctx)
	if err != nil {
		return report{}, err
	}
	changes := []*change{
		{name: "one segment"},
		{key: "change", name: "a change of segments every 50 ms", every: 50 * time.Millisecond},
		{key: "slow", name: "every 300 ms, after a store call of 100 ms", every: 300 * time.Millisecond, delay: 100 * time.Millisecond},
	}
	for range l.rounds + 2 { // the outermost figures vary most
		for _, c := range changes {
			if err := c.measure(ctx, rate); err != nil {
				return report{}, err
			}
		}
	}
	none, found := changes[0].took[keyQuantile], make(map[string]result)
	for _, c := range changes[1:] {
		// Not distinguishable: within the spread of the rounds without a change.
		found[c.key] = result{figure: c.took[keyQuantile].over(none), limit: none.most() / none.median()}
	}
	wire, slow, err := slowWire(ctx, l)
	found["slow-wire"] = slow
	return report{table: latencyTable(changes, rate) + wire, picture: latencyPicture(changes), found: found}, err
}

// halfRate is half of how many calls a second a loop makes that looks at the time.
func halfRate(ctx context.Context) (int, error) {
	const n = 2_000_000
	began := time.Now()
	_, err := openLoop(ctx, segment.NewBuffer(&slowStore{step: segment.MaxStep}, bench.Tag, nil), 1e9, n)
	return int(n / time.Since(began).Seconds() / 2), err
}

func (c *change) measure(ctx context.Context, rate int) error {
	store := &slowStore{step: segment.MaxStep, delay: c.delay}
	if c.every > 0 {
		store.step = int64(float64(rate) * c.every.Seconds())
	}
	b := segment.NewBuffer(store, bench.Tag, &segment.Options{MaxStock: 4 * store.step})
	took, err := openLoop(ctx, b, rate, int(latencyRun.Seconds()*float64(rate)))
	if err != nil {
		return err
	}
	if c.took == nil {
		c.took = make(map[float64]figure)
	}
	for _, q := range quantiles {
		c.took[q] = append(c.took[q], float64(took[int(q*float64(len(took)-1))]))
	}
	c.calls = store.calls.Load()
	return b.Close(ctx)
}

// openLoop calls n times, each call due at its own time, and returns the sorted times from
// when a call was due to its end.
func openLoop(ctx context.Context, ids bench.Source, rate, n int) ([]time.Duration, error) {
	if _, err := ids.Next(ctx); err != nil {
		return nil, err
	}
	took := make([]time.Duration, n)
	began := time.Now()
	for i := range took {
		due := time.Duration(float64(i) * float64(time.Second) / float64(rate))
		for time.Since(began) < due { // a sleep would be less exact than the figure
		}
		if _, err := ids.Next(ctx); err != nil {
			return nil, err
		}
		took[i] = time.Since(began) - due
	}
	slices.Sort(took)
	return took, nil
}

func latencyTable(changes []*change, rate int) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %d calls a second, due at fixed times | store calls |", rate)
	for _, q := range quantiles {
		fmt.Fprintf(&t, " %s |", quantileName(q))
	}
	t.WriteString("\n|---|---|" + strings.Repeat("---|", len(quantiles)) + "\n")
	for _, c := range changes {
		fmt.Fprintf(&t, "| %s | %d |", c.name, c.calls)
		for _, q := range quantiles {
			f := c.took[q]
			if q == keyQuantile {
				fmt.Fprintf(&t, " %s |", f.spread())
				continue
			}
			fmt.Fprintf(&t, " %s |", short(f.median()))
		}
		t.WriteString("\n")
	}
	return t.String() + "\nTimes in ns.\n"
}

func quantileName(q float64) string {
	if q == 1 {
		return "max"
	}
	return fmt.Sprintf("p%g", 100*q)
}

// latencyPicture draws the distributions over each other.
func latencyPicture(changes []*change) string {
	chart := curves{title: "latency in ns by percentile, both logarithmic"}
	for _, q := range quantiles {
		chart.at = append(chart.at, quantileName(q))
	}
	for _, c := range changes {
		var ys []float64
		for _, q := range quantiles {
			ys = append(ys, c.took[q].median())
		}
		chart.add(c.name, ys)
	}
	return chart.svg()
}
