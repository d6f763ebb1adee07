package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
)

// A stall is a time in which the database's disk hangs. The database shows a write before it
// acknowledges it, and a crash loses it. InnoDB without a binary log works so.
type stall struct {
	synced  memory.Snapshot // the data that survive a crash
	over    chan struct{}   // closed at its end; then crashed is set
	crashed bool
}

// stall has the disk hang from now on.
func (d *database) stall() {
	d.w.note("the disk of the database hangs")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stalled = &stall{synced: d.cells.Snapshot(), over: make(chan struct{})}
}

// goOn makes the disk write the unsynced data, and answers the writes.
func (d *database) goOn() {
	d.w.note("the disk of the database goes on")
	d.endStall(func(*stall) {})
}

// crash loses the unsynced data. The database is back at once.
func (d *database) crash() {
	d.w.note("the database crashes: what it has not answered is lost")
	d.endStall(func(s *stall) {
		s.crashed = true
		d.cells.Restore(s.synced)
	})
}

func (d *database) endStall(how func(*stall)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how(d.stalled)
	close(d.stalled.over)
	d.stalled = nil
}

// await waits for the answer to a write.
func (s *stall) await(ctx context.Context, p *process) error {
	if s == nil {
		return nil
	}
	select {
	case <-s.over:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.dead:
		return errDead
	}
	if s.crashed {
		return errNetwork
	}
	return nil
}

// hang has the database's disk hang while a process starts or stops. Mostly the database crashes
// then, and others start at once, while some cannot ask it.
func (w *leaseWorld) hang(m *machine) {
	rng := w.rng
	stops := rng.IntN(4) == 0
	if p := m.proc.Load(); p != nil && !stops && rng.IntN(2) == 0 {
		p.shutDown()
	}
	w.db.stall()
	switch p := m.proc.Load(); {
	case p == nil:
		w.launch(m)
	case stops:
		p.shutDown()
	}
	time.Sleep(w.whileStalled(rng))
	if rng.IntN(4) == 0 {
		w.db.goOn()
		return
	}
	w.db.crash()
	if rng.IntN(2) == 0 {
		w.isolate(m)
	}
	w.launchAll()
}

// whileStalled is how long the disk hangs: some calls, or longer than a lease.
func (w *leaseWorld) whileStalled(rng *rand.Rand) time.Duration {
	longest := []time.Duration{time.Second, 8 * time.Second, w.keeper.Horizon + 4*time.Second}[rng.IntN(3)]
	return longest/2 + time.Duration(rng.Int64N(int64(longest/2)))
}

// isolate cuts a machine off from the registry for a little longer than a lease.
func (w *leaseWorld) isolate(m *machine) {
	w.note("%s is cut off from the registry until its lease has run out", m.name)
	m.deaf.Store(time.Now().Add(w.keeper.Horizon + time.Second).UnixNano())
}

// outlive cuts a holder off from the registry. It issues to the end of its lease, while others wait
// for that.
func (w *leaseWorld) outlive(m *machine) {
	w.isolate(m)
	w.launchAll()
	time.Sleep(w.keeper.Horizon + time.Second)
}

// hang makes the database's disk hang for a while; a process may stop meanwhile. Mostly the
// database crashes then.
func (w *tagWorld) hang(p *process) {
	w.db.stall()
	if w.rng.IntN(4) == 0 {
		p.shutDown()
	}
	time.Sleep(time.Duration(w.rng.Int64N(int64(5 * time.Second))))
	if w.rng.IntN(4) == 0 {
		w.db.goOn()
	} else {
		w.db.crash()
	}
}
