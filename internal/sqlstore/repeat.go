package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Repeat makes a call again for as long as its error is one that undone knows: the
// server says for certain that it undid the call in favour of others. Nothing else is
// ever repeated. It ends with ctx, or after five seconds.
func Repeat(ctx context.Context, undone func(error) bool, call func() error) error {
	const longest, limit = 100 * time.Millisecond, 5 * time.Second
	start := time.Now()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, longest) {
		err := call()
		if !undone(err) || time.Since(start) > limit {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: others were faster again and again: %w", ctx.Err(), err)
		case <-time.After(rand.N(wait)):
		}
	}
}

// Hurried reports that a caller's time was up so soon that it says nothing of the server.
func Hurried(err error, start time.Time) bool {
	return errors.Is(err, context.DeadlineExceeded) && time.Since(start) < 500*time.Millisecond
}

// ErrSession is a session that must not be used, nor given back to the pool.
var ErrSession = errors.New("unfit session")
