package worker

import (
	"sync/atomic"
	"time"
)

// A Clock tells the time that IDs carry: the monotonic clock, anchored to the wall clock, so that
// steps of the wall clock do not move it. The [Keeper] moves it forwards after a confirmed step of
// the wall clock, and anchors it again while it holds no lease. Its methods are safe for concurrent
// use.
type Clock struct {
	wall   func() time.Time
	mono   func() time.Duration
	offset atomic.Int64 // nanoseconds to add to mono for Unix time
}

// NewClock returns a clock that starts at the present wall clock.
func NewClock() *Clock {
	start := time.Now()
	return NewClockFrom(time.Now, func() time.Duration { return time.Since(start) })
}

// NewClockFrom returns a clock from a wall clock and a monotonic one, whose zero does not matter.
func NewClockFrom(wall func() time.Time, mono func() time.Duration) *Clock {
	c := &Clock{wall: wall, mono: mono}
	c.anchor()
	return c
}

// anchor sets c by the wall clock.
func (c *Clock) anchor() { c.offset.Store(int64(c.drift())) }

// Now returns the time. It does not go backwards while a lease is held.
func (c *Clock) Now() time.Time { return time.Unix(0, c.offset.Load()+int64(c.mono())) }

// milli returns the time in whole milliseconds.
func (c *Clock) milli() time.Time { return c.Now().Truncate(time.Millisecond) }

// step returns how far the wall clock is ahead of c; behind is negative.
func (c *Clock) step() time.Duration {
	return c.drift() - time.Duration(c.offset.Load())
}

// drift returns how far the wall clock is ahead of the monotonic one. It grows while the machine is
// suspended, where the monotonic clock stands still.
func (c *Clock) drift() time.Duration { return time.Duration(c.wall().UnixNano()) - c.mono() }

// follow moves c forwards by step; a step backwards does nothing.
func (c *Clock) follow(step time.Duration) {
	if step > 0 {
		c.offset.Add(int64(step))
	}
}
