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

// latency shows whether callers notice a change of segments, or a store call of 100 ms: Next
// in an open loop, at a rate that leaves the core half idle.
func latency(ctx context.Context, _ *lab) (report, error) {
	const rate, seconds = 1_000_000, 5
	var t strings.Builder
	t.WriteString("| 1,000,000 calls a second, due at fixed times | store calls | p50 | p99 | p99.9 | p99.99 |\n|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		name  string
		store *slowStore
	}{
		{"one segment", &slowStore{step: segment.MaxStep}},
		{"a change of segments every 50 ms", &slowStore{step: 50_000}},
		{"the same, store calls of 100 ms, every 300 ms", &slowStore{step: 300_000, delay: 100 * time.Millisecond}},
	} {
		took, err := openLoop(ctx, segment.NewBuffer(c.store, tag, &segment.Options{MaxStock: 1 << 40}), rate, seconds*rate)
		if err != nil {
			return report{}, err
		}
		at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))].Round(10 * time.Nanosecond) }
		fmt.Fprintf(&t, "| %s | %d | %v | %v | %v | %v |\n", c.name, c.store.calls.Load(), at(.5), at(.99), at(.999), at(.9999))
	}
	return report{table: t.String()}, nil
}

// openLoop calls n times, each call due at its own time, and returns the sorted times from
// when a call was due to its end.
func openLoop(ctx context.Context, ids source, rate, n int) ([]time.Duration, error) {
	if _, err := ids.Next(ctx); err != nil {
		return nil, err
	}
	took := make([]time.Duration, n)
	began := time.Now()
	for i := range took {
		due := time.Duration(i) * time.Second / time.Duration(rate)
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
