package sim

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// lapse lets a lease run out by the clock of one server of the database, and another program have
// the worker ID. Then a server takes over that lacks this, and by whose clock the lease has not run
// out yet.
func (w *poolWorld) lapse() {
	const fast, slow = int64(2 * time.Second), -int64(2 * time.Second)
	defer w.db.weather.Store(w.db.weather.Swap(0))
	w.resumeAll()
	w.note("a server takes over whose clock is ahead")
	w.db.skew.Store(fast)
	w.db.takeOver(w.db.cells.Snapshot())
	time.Sleep(poolTTL + worker.DefaultTolerance + 2*time.Second) // until a claim may count

	victim := w.lessee("the first", nil)
	if victim.lease == nil {
		return
	}
	before, limit := w.db.cells.Snapshot(), victim.lease.Limit
	time.Sleep(time.Until(limit.Add(-time.Duration(fast))))
	if heir := w.lessee("the second", nil); heir.lease != nil {
		heir.issue()
	}
	w.note("a server takes over that lacks the latest writes, and whose clock is behind")
	w.db.skew.Store(slow)
	w.db.takeOver(before)
	for range 3 {
		if w.unhung(victim.renew); victim.lease == nil {
			return
		}
		victim.cursor = max(victim.cursor, limit.UnixMilli())
		victim.issue()
	}
}

// lessee returns a program that has tried to get a lease, for a second or so.
func (w *poolWorld) lessee(name string, via *machine) *program {
	p := &program{w: w, name: name, rng: w.random(fmt.Sprint(name, w.now())), via: via}
	for range 10 {
		if w.unhung(p.claim); p.lease != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return p
}

// unhung makes a call in the schedule's own turn, in which nobody else resumes a paused server.
func (w *poolWorld) unhung(call func()) {
	done := make(chan struct{})
	w.clients.Go(func() { call(); close(done) })
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Minute):
			w.resumeAll()
		}
	}
}

// straggle pauses a server after it has read the registry for a claim. Another program gets the
// worker ID. Then a server of the database takes over that lacks this, and the claim arrives there.
func (w *poolWorld) straggle(m *machine) {
	defer w.db.weather.Store(w.db.weather.Swap(0))
	w.resumeAll()
	if free := w.lessee("the former", nil); free.lease == nil {
		return
	} else if w.unhung(free.release); free.lease != nil {
		return
	}
	before, p := w.db.cells.Snapshot(), m.proc.Load()
	p.mu.Lock()
	p.pauses = pauses{at: 3, after: true}
	p.mu.Unlock()
	var taken atomic.Int64 // the first time of the other program
	late := &program{w: w, name: "the late", rng: w.random(fmt.Sprint("late ", w.now())), via: m}
	w.clients.Go(func() {
		if late.claim(); late.lease != nil {
			late.cursor = max(late.cursor, taken.Load())
			late.issue()
		}
	})
	time.Sleep(200 * time.Millisecond)
	other := w.machines[0]
	if other == m {
		other = w.machines[1]
	}
	if fast := w.lessee("the fast", other); fast.lease != nil {
		taken.Store(fast.cursor)
		fast.issue()
	}
	w.note("a server takes over that lacks the latest writes")
	w.db.takeOver(before)
	p.resume()
	time.Sleep(time.Second)
}
