package snowflake

import (
	"time"
)

// Stats is a snapshot of a [Generator].
type Stats struct {
	Held    bool          // a lease is held; the next four are its
	Worker  int64         // the worker ID
	Until   time.Time     // the first time that it does not allow yet
	Last    time.Time     // the tick of the last ID; zero: no ID yet
	Ahead   time.Duration // how far Last is ahead of the clock; 0: it is not
	Why     error         // why no lease is held
	Waiting int           // calls that wait
	Issued  int64         // IDs issued since the start, including a few lost ones
	Waits   int64         // calls that had to wait
	Refused int64         // calls that failed for lack of IDs, of a lease or of time
}

// Stats returns a snapshot; the figures come from the cursor, so that counting costs
// the callers nothing.
func (g *Generator) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := Stats{Held: g.held, Why: g.why, Waiting: g.queue.len(), Issued: int64(g.issued), Waits: g.waits, Refused: g.refused}
	if !g.held {
		return st
	}
	l := g.current.Load()
	l.account(l.cursor.Load())
	st.Issued += int64(l.issued)
	st.Worker, st.Until = l.lease.Worker(), l.lease.Limit()
	if l.last > 0 {
		last := l.layout.start(l.tickOf(l.last - 1))
		st.Last = time.UnixMilli(last)
		st.Ahead = max(time.Duration(last-g.opts.Clock.Now().UnixMilli())*time.Millisecond, 0)
	}
	return st
}
