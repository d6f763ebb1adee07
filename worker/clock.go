package worker

import (
	"sync/atomic"
	"time"
)

// A Clock tells the time that IDs carry: the monotonic clock, anchored once to the
// wall clock, so that steps of the wall clock do not move it. [Clock.Step] tells how
// far the wall clock has moved away since; [Clock.Follow] goes along, forwards only.
// Its methods are safe for concurrent use.
type Clock struct {
	wall   func() time.Time
	mono   func() time.Duration
	offset atomic.Int64 // nanoseconds to add to mono for Unix time; only grows
}

// NewClock returns a clock that is anchored to the wall clock as it is now.
func NewClock() *Clock {
	start := time.Now()
	return NewClockFrom(time.Now, func() time.Duration { return time.Since(start) })
}

// NewClockFrom returns a clock from a wall clock and a monotonic one, whose zero does
// not matter.
func NewClockFrom(wall func() time.Time, mono func() time.Duration) *Clock {
	c := &Clock{wall: wall, mono: mono}
	c.offset.Store(wall().UnixNano() - int64(mono()))
	return c
}

// Now returns the time in Unix milliseconds. It never goes backwards.
func (c *Clock) Now() int64 {
	return (c.offset.Load() + int64(c.mono())) / int64(time.Millisecond)
}

// Step returns how far the wall clock is ahead of c; behind is negative.
func (c *Clock) Step() time.Duration {
	return time.Duration(c.wall().UnixNano() - c.offset.Load() - int64(c.mono()))
}

// Follow moves c forwards by step; a step backwards does nothing.
func (c *Clock) Follow(step time.Duration) {
	if step > 0 {
		c.offset.Add(int64(step))
	}
}
