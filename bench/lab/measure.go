package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A row is one of the things that are measured: a source of IDs for each goroutine, all of
// one generator.
type row struct {
	name string
	per  float64                            // IDs that one call has
	open func() (of func() source, _ error) // nil: measured by its own process
	jvm  string                             // the name there
}

// A source hands out an ID. All are called in the same way, in the same loop.
type source interface {
	Next(ctx context.Context) (int64, error)
}

// A figure is the time of one ID in several rounds, in ns.
type figure []float64

func (f figure) median() float64 {
	sorted := slices.Sorted(slices.Values(f))
	return sorted[len(sorted)/2]
}

func (f figure) least() float64 { return slices.Min(f) }
func (f figure) most() float64  { return slices.Max(f) }

// batch is how many calls are made between two looks at the time.
const batch = 512

// nanosPerCall has goroutines call for d and returns the time of all over the number of
// calls.
func nanosPerCall(of func() source, goroutines int, d time.Duration) (float64, error) {
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for range goroutines {
		ids := of()
		wg.Go(func() {
			n, err := callFor(ids, began, d)
			if calls.Add(n); err != nil {
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(took.Nanoseconds()) / float64(calls.Load()), nil
}

func callFor(ids source, began time.Time, d time.Duration) (n int64, err error) {
	ctx := context.Background()
	for time.Since(began) < d {
		for range batch {
			if _, err := ids.Next(ctx); err != nil {
				return n, err
			}
		}
		n += batch
	}
	return n, nil
}
