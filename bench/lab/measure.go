package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/bench"
)

// A figure holds one value for each of several rounds.
type figure []float64

func (f figure) median() float64 {
	sorted := slices.Sorted(slices.Values(f))
	return sorted[len(sorted)/2]
}

func (f figure) least() float64 { return slices.Min(f) }
func (f figure) most() float64  { return slices.Max(f) }

// over is the figure of each round divided by that of another row.
func (f figure) over(other figure) figure {
	return f.with(other, func(a, b float64) float64 { return a / b })
}

// above is the figure of each round less that of another row.
func (f figure) above(other figure) figure {
	return f.with(other, func(a, b float64) float64 { return a - b })
}

func (f figure) with(other figure, of func(a, b float64) float64) figure {
	all := make(figure, len(f))
	for i := range f {
		all[i] = of(f[i], other[i])
	}
	return all
}

// each is a function of the figure of each round.
func (f figure) each(of func(float64) float64) figure {
	return f.with(f, func(x, _ float64) float64 { return of(x) })
}

// spread is the median and, in brackets, the least and the most.
func (f figure) spread() string {
	return fmt.Sprintf("%s (%s … %s)", short(f.median()), short(f.least()), short(f.most()))
}

// short writes a number with three digits.
func short(x float64) string {
	if x >= 1000 || x <= -1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// batch is how many calls are made between two looks at the time.
const batch = 512

// nanosPerCall has goroutines call for d and returns the time of all over the number of
// calls.
func nanosPerCall(of func() bench.Source, goroutines int, d time.Duration) (float64, error) {
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

func callFor(ids bench.Source, began time.Time, d time.Duration) (n int64, err error) {
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
