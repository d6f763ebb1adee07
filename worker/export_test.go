package worker

import "time"

// Step and Follow are the keeper's use of a clock.
func (c *Clock) Step() time.Duration       { return c.step() }
func (c *Clock) Follow(step time.Duration) { c.follow(step) }
