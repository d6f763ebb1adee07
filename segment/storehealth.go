package segment

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// Back-off between calls to a store that fails: full jitter, doubling up to a
// bound. That is also how long after its recovery a store is noticed; it is shorter
// while callers wait, which they do at the beginning of an outage only.
const (
	firstBackoff  = 10 * time.Millisecond
	waitedBackoff = 100 * time.Millisecond
	maxBackoff    = time.Second
)

// storeHealth is the present problem of the store. The zero value is a healthy store.
type storeHealth struct {
	err      error
	since    time.Time
	retryAt  time.Time
	failures int32 // small, as there may be very many buffers
	logged   bool
}

// failed takes in a failed call and reports whether it is the first one; waited: callers
// wait for it.
func (h *storeHealth) failed(now time.Time, err error, waited bool) (first bool) {
	first = h.err == nil
	if first {
		h.since = now
	}
	h.err = err
	bound := maxBackoff
	if waited {
		bound = waitedBackoff
	}
	bound = min(bound, firstBackoff<<min(h.failures, 10))
	h.retryAt = now.Add(rand.N(bound))
	h.failures++
	return first
}

// resume is for a call after a rest: a failure from before the last wait of a caller does not show how
// long the store has been failing.
func (h *storeHealth) resume(now time.Time, wait time.Duration) {
	if h.err != nil && now.Sub(h.retryAt) > wait {
		h.since = now
	}
}

// refusal returns why a caller should not even wait: the store will not deliver,
// or has been failing for as long as a caller would wait. A failure after which no
// call is under way or due is no reason.
func (h *storeHealth) refusal(now time.Time, wait time.Duration, trying bool) error {
	switch {
	case h.err == nil, !trying && now.After(h.retryAt):
		return nil
	case isPermanent(h.err), now.Sub(h.since) >= wait:
		return h.err
	}
	return nil
}

// isFinal reports an error after which no call will ever succeed.
func isFinal(err error) bool {
	return errors.Is(err, leaf.ErrOverflow) || errors.Is(err, leaf.ErrClosed)
}

// isUnfit reports an error of a store that an operator has to mend, or that the URL names wrongly.
func isUnfit(err error) bool {
	return errors.Is(err, leaf.ErrUnsupported) || errors.Is(err, leaf.ErrInvalid)
}

// isPermanent reports whether waiting does not help against err.
func isPermanent(err error) bool { return isFinal(err) || isUnfit(err) }

// errWaited ends a wait after [Options.Wait].
var errWaited = errors.New("waited long enough")

// exhausted is the error of a caller that gets no ID because of cause; nil: the
// store has not answered yet.
func (b *Buffer) exhausted(cause error) error {
	switch {
	case cause == nil:
		return fmt.Errorf("tag %q: %w: the store has not answered within %v", b.tag, leaf.ErrExhausted, b.opts.Wait)
	case isFinal(cause):
		return fmt.Errorf("tag %q: %w", b.tag, cause)
	}
	return fmt.Errorf("tag %q: %w: %w", b.tag, leaf.ErrExhausted, cause)
}

// failing are the buffers of a set whose latest call to the store failed. Its zero value is
// ready to use; its lock is taken with that of a buffer held.
type failing struct {
	mu      sync.Mutex
	buffers map[*Buffer]struct{}
}

func (f *failing) add(b *Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buffers == nil {
		f.buffers = make(map[*Buffer]struct{})
	}
	f.buffers[b] = struct{}{}
}

func (f *failing) remove(b *Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.buffers, b); len(f.buffers) == 0 {
		f.buffers = nil // it may have been large
	}
}

func (f *failing) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.buffers) == 0
}

func (f *failing) list() []*Buffer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.buffers))
}
