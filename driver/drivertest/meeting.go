package drivertest

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// looksOfACall is how often a call may look at its context while a rule comes between.
const looksOfACall int64 = 8

// A meeting is the context of a call that another one meets: a look at it calls a function first. The
// function comes between two steps of the call, however busy the machine is.
type meeting struct {
	context.Context
	looks atomic.Int64 // calls of Err before that
	other func()
	over  chan struct{} // closed when other has returned
}

func meets(ctx context.Context, looks int64, other func()) *meeting {
	m := &meeting{Context: ctx, other: other, over: make(chan struct{})}
	m.looks.Store(looks)
	return m
}

// endsAt returns a context that ends at a look at it.
func endsAt(ctx context.Context, looks int64) *meeting {
	ctx, cancel := context.WithCancel(ctx)
	return meets(ctx, looks, cancel)
}

// lockWait is how long a look waits for the other call: that may wait for a lock of this one.
const lockWait = time.Second

// Err implements [context.Context].
func (m *meeting) Err() error {
	if m.looks.Add(-1) == -1 {
		go func() {
			defer close(m.over)
			m.other()
		}()
		select {
		case <-m.over:
		case <-time.After(lockWait):
		}
	}
	return m.Context.Err()
}

// wait waits for the other call, and reports whether there was one. Later looks call nothing.
func (m *meeting) wait() bool {
	if m.looks.Swap(math.MinInt64/2) >= 0 {
		return false
	}
	<-m.over
	return true
}
