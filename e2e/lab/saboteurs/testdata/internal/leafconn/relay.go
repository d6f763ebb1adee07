package leafconn

import (
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// An offer is the grant of a call that wants another call's.
type offer struct {
	grant  segment.Grant
	answer chan segment.Grant
}

var offers = make(chan offer)

// swapped exchanges the grants of two calls that end at about the same time.
func swapped(g segment.Grant) segment.Grant {
	mine := offer{g, make(chan segment.Grant, 1)}
	select {
	case other := <-offers:
		other.answer <- g
		return other.grant
	case offers <- mine:
		return <-mine.answer
	case <-time.After(10 * time.Millisecond):
		return g
	}
}

var first atomic.Int64

// firstStep returns the step of the first tag, whatever the tag.
func (Store) firstStep(step int64) int64 {
	first.CompareAndSwap(0, step)
	return first.Load()
}
