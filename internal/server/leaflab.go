//go:build leaflab

package server

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/worker"
)

// The variables of a build for the fault lab, which no other build has.
const (
	labClock   = "LEAFLAB_CLOCK"   // a file that says how far the wall clock is off, such as -1h
	labHorizon = "LEAFLAB_HORIZON" // how far ahead a worker ID is reserved, such as 8s
)

// forLab gives a lease the clock and the horizon of the fault lab.
func forLab(k *worker.Options, r *backend.RegistryOptions) {
	if path := os.Getenv(labClock); path != "" {
		start := time.Now()
		r.Now = wrongClock(path)
		k.Clock = worker.NewClockFrom(r.Now, func() time.Duration { return time.Since(start) })
	}
	if horizon, err := time.ParseDuration(os.Getenv(labHorizon)); err == nil {
		k.Horizon, k.Extend, k.CallTimeout = horizon, horizon/8, horizon/4
	}
}

// wrongClock returns the wall clock, off by the offset in the file.
func wrongClock(path string) func() time.Time {
	var mu sync.Mutex
	var off time.Duration
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if text, err := os.ReadFile(path); err == nil {
			if d, err := time.ParseDuration(strings.TrimSpace(string(text))); err == nil {
				off = d
			}
		}
		return time.Now().Add(off)
	}
}
