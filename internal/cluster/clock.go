package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/internal/hint"
)

// Clock returns the median of the other members' clocks; of two middle ones, that nearer to this
// machine's. Without other members it returns the zero time, or an error if the configuration demands
// others.
func (m *Member) Clock(ctx context.Context) (time.Time, error) {
	server := m.running()
	if reason := m.failure(); reason != nil {
		return time.Time{}, reason
	}
	if server == nil {
		return time.Time{}, errors.New("the member of the cluster has not started")
	}
	var others []string
	for _, other := range server.Cluster().Members() {
		if other.ID != server.MemberID() && other.IsStarted() {
			others = append(others, addressOf(other))
		}
	}
	switch {
	case len(others) == 0 && m.config.NotAlone:
		return time.Time{}, fmt.Errorf("%w: this server is the only one of its cluster, and other machines reach it", hint.ErrAlone)
	case len(others) == 0:
		return time.Time{}, nil
	}
	type answer struct {
		offset time.Duration
		err    error
	}
	answers := make(chan answer, len(others))
	for _, addr := range others {
		go func() {
			sent := time.Now()
			status, err := m.status(ctx, addr)
			middle := sent.Add(time.Since(sent) / 2)
			answers <- answer{status.Now.Sub(middle), err}
		}()
	}
	var offsets []time.Duration
	var failed failures.List
	for range others {
		if a := <-answers; a.err != nil {
			failed = append(failed, a.err)
		} else {
			offsets = append(offsets, a.offset)
		}
	}
	if len(offsets) == 0 {
		return time.Time{}, fmt.Errorf("no other member tells its time: %w", failed)
	}
	return time.Now().Add(median(offsets)), nil
}

// median returns the middle one of offsets; of two, the one nearer to 0.
func median(offsets []time.Duration) time.Duration {
	slices.Sort(offsets)
	n := len(offsets)
	low, high := offsets[(n-1)/2], offsets[n/2]
	if high.Abs() < low.Abs() {
		return high
	}
	return low
}
