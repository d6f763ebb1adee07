package sim

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A limit is a context with a deadline. Its timer starts when somebody first waits for its end: the
// stock answers most calls at once.
type limit struct {
	at     time.Time
	once   sync.Once
	timed  atomic.Pointer[context.Context] // nil: nobody has waited
	cancel context.CancelFunc
}

// Deadline is when it ends.
func (l *limit) Deadline() (time.Time, bool) { return l.at, true }

// Done is closed then.
func (l *limit) Done() <-chan struct{} {
	l.once.Do(func() {
		timed, cancel := context.WithDeadline(context.Background(), l.at)
		l.cancel = cancel
		l.timed.Store(&timed)
	})
	return (*l.timed.Load()).Done()
}

// Err is nil before.
func (l *limit) Err() error {
	if timed := l.timed.Load(); timed != nil {
		return (*timed).Err()
	}
	if time.Now().Before(l.at) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value has contexts made from this one end without a goroutine of their own.
func (l *limit) Value(key any) any {
	if timed := l.timed.Load(); timed != nil {
		return (*timed).Value(key)
	}
	return nil
}

// stop ends it.
func (l *limit) stop() {
	if l.timed.Load() != nil {
		l.cancel()
	}
}
