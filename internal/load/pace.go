package load

import "time"

const (
	// shortestSleep bounds how often the pace wakes up. It sends together all requests due within
	// this time.
	shortestSleep = 50 * time.Microsecond

	// longestSleep is how long the end of a run may take to be noticed.
	longestSleep = 50 * time.Millisecond
)

// dueAt is when pipeline k is due.
func (r *run) dueAt(k int64) time.Duration {
	return time.Duration(float64(k) * float64(r.opts.Pipeline) / r.opts.Rate * float64(time.Second))
}

// pace hands out the due times of requests, each at its time. While all clients are busy it waits
// for them, and then continues with the passed ones.
func (r *run) pace() {
	sleep, closeSleeper := r.opts.sleep, func() {}
	if sleep == nil {
		sleep, closeSleeper = newSleeper()
	}
	defer closeSleeper()
	defer close(r.due)
	k := int64(0)
	for r.dueAt(k) < r.end() && r.waitUntil(r.dueAt(k), sleep) && r.hand(r.dueAt(k)) {
		k++
	}
	r.unsent(k)
}

// waitUntil sleeps until a time has come; false: the run is over before.
func (r *run) waitUntil(due time.Duration, sleep func(time.Duration)) bool {
	for r.over.Err() == nil {
		left := due - r.elapsed()
		if left <= 0 {
			return true
		}
		sleep(min(max(left, shortestSleep), longestSleep))
	}
	return false
}

func (r *run) hand(due time.Duration) bool {
	select {
	case r.due <- due:
		return true
	case <-r.over.Done():
		return false
	}
}

// unsent records the requests, from pipeline k on, that were due before the end of the run: they
// waited at least until then.
func (r *run) unsent(k int64) {
	end := min(r.elapsed(), r.end())
	waiting := func(due time.Duration) {
		if due >= r.opts.WarmUp && due < end {
			r.records[0].unsent(end-due, int64(r.opts.Pipeline))
		}
	}
	for queued := len(r.due); queued > 0; queued-- {
		select {
		case due := <-r.due:
			waiting(due)
		default: // a client was faster
		}
	}
	for ; r.dueAt(k) < end; k++ {
		waiting(r.dueAt(k))
	}
}
