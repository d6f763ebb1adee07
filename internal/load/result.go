package load

import "time"

// A Result is the measurement of a run, without the warm-up, except for the comparison of IDs.
type Result struct {
	Started     time.Time // of the measurement, after the warm-up
	Finished    time.Time
	Interrupted bool

	Sent      int64 // requests
	Succeeded int64
	Failed    int64
	Unsent    int64 // due, but all clients were busy until the end
	IDs       int64 // received

	// RequestRate and IDRate count what succeeded, a second.
	RequestRate, IDRate float64

	Latency Latency
	Errors  []ErrorCount // the most frequent ones first
	Check   Check
}

// Latency is the distribution of the latencies, with three digits.
type Latency struct {
	// Corrected: they count from when a request was due.
	Corrected bool

	Mean, P50, P90, P99, P999, P9999, Max time.Duration
}

// An ErrorCount is how often requests failed in one way.
type ErrorCount struct {
	Kind    string `json:"kind"`
	Count   int64  `json:"count"`
	Example string `json:"example"` // the message of the first such error
}

// A Check is the result of comparing all IDs.
type Check struct {
	Checked    int64    `json:"checked"`      // IDs, those of the warm-up included
	Kept       int64    `json:"kept"`         // of them; fewer where the bound on memory was reached
	Duplicates int64    `json:"duplicates"`   // IDs that had been received before
	Examples   []string `json:"examples"`     // the first of them; never nil
	Memory     int64    `json:"memory_bytes"` // in use, about
}

func (r *run) result(interrupted bool) *Result {
	sum := merge(r.records)
	end := r.end()
	if interrupted {
		end = min(end, r.elapsed())
	}
	measured := max(end, sum.last) - r.opts.WarmUp
	res := &Result{
		Started: r.start.Add(r.opts.WarmUp), Finished: time.Now(), Interrupted: interrupted,
		Sent: sum.sent, Succeeded: sum.sent - sum.failed, Failed: sum.failed, Unsent: sum.missed, IDs: sum.ids,
		Latency: latencyOf(sum), Errors: sum.errors(), Check: r.checker.close(),
	}
	res.Latency.Corrected = r.opts.Rate > 0
	if measured > 0 {
		res.RequestRate = float64(res.Succeeded) / measured.Seconds()
		res.IDRate = float64(res.IDs) / measured.Seconds()
	}
	return res
}

func latencyOf(r *record) Latency {
	at := func(percent float64) time.Duration { return time.Duration(r.latencies.ValueAtQuantile(percent)) }
	return Latency{
		Mean: time.Duration(r.latencies.Mean()), Max: time.Duration(r.latencies.Max()),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99),
	}
}
