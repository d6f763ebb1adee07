package sim

import (
	"time"

	"github.com/leaf-id/leaf/driver/memory"
)

// A lapseWorld is a lossWorld with one worker ID, or two where servers do not all have a name of their
// own. The clocks of two servers of its registry are off by almost the whole tolerance each, in the one
// harmful direction.
type lapseWorld struct{ *lossWorld }

func newLapseWorld(seed uint64, sabotage string) *lapseWorld {
	w := &lapseWorld{newLossWorld(seed, sabotage)}
	w.layouts[0].WorkerBits = 0
	w.db.unnamed, w.db.untracked = false, w.random("untracked").IntN(3) == 0
	if w.db.untracked {
		w.layouts[0].WorkerBits = 1
	}
	w.pause = 150 * time.Millisecond // the schedule has few steps
	w.far, w.skewed, w.wrong = false, true, tolerated
	for _, m := range w.machines {
		m.skew.Store(0)
	}
	return w
}

// run carries out the schedule.
func (w *lapseWorld) run() {
	first, second := w.machines[0], w.machines[1]
	empty := w.db.cells.Snapshot()
	alone := w.rng.IntN(2) == 0
	if !alone {
		w.db.skew.Store(int64(tolerated))
	}
	w.launch(first)
	w.clientsOf(first)
	time.Sleep(2*claimDelay + time.Duration(w.rng.Int64N(int64(lossExtend))))
	switch p := first.proc.Load(); {
	case p == nil || !p.holds():
		w.remark("the first machine has no worker ID")
	case w.db.untracked:
		w.unseen(second, w.machines[2])
	case alone:
		w.outlast(first, second, empty)
	default:
		w.overtake(first, second)
	}
	w.heal()
}

// overtake pauses a holder until its lease has run out by a clock ahead of the others. Another machine claims
// the worker ID. Then a server takes over that lacks this, and by whose clock the lease has not run out.
func (w *lapseWorld) overtake(holder, heir *machine) {
	p := holder.proc.Load()
	if w.rng.IntN(2) == 0 {
		p.pause()
	} else { // within an extension
		points := []string{"answer", "time"}
		if w.random("swap").IntN(2) == 0 {
			points = []string{"swap", "swapped"}
		}
		p.pauseSoon(points[w.rng.IntN(2)])
	}
	limit := p.serve.(*leaseServer).node.Keeper().Status().Horizon
	before := w.db.cells.Snapshot()
	w.launch(heir)
	w.clientsOf(heir)
	time.Sleep(time.Until(limit) + time.Duration(w.rng.Int64N(int64(3*time.Second))))
	w.note("a server takes over that lacks the latest writes, and whose clock is behind")
	w.db.skew.Store(-int64(tolerated))
	w.db.takeOver(before)
	p.resume()
	time.Sleep(hears)
}

// outlast has a machine continue from its file alone while a server without its lease takes over,
// whose clock is behind, as that of the machine is that claims there.
func (w *lapseWorld) outlast(holder, heir *machine, empty memory.Snapshot) {
	holder.proc.Load().kill()
	holder.away.Store(true)
	w.launch(holder)
	w.note("a server takes over that lacks all writes, and whose clock is behind")
	w.db.skew.Store(-int64(tolerated))
	w.db.takeOver(empty)
	heir.skew.Store(-int64(tolerated))
	w.launch(heir)
	w.clientsOf(heir)
	time.Sleep(w.claimDelay() + time.Duration(w.rng.Int64N(int64(10*time.Second))))
}

// unseen has a server take over under the name of the one before, after a silence. It lacks the lease of
// the holder, and its clock is behind: by that clock there was no silence. Another machine claims at once.
func (w *lapseWorld) unseen(holder, heir *machine) {
	w.db.skew.Store(int64(tolerated))
	time.Sleep(lossExtend + time.Second)
	before := w.db.cells.Snapshot()
	w.launch(holder)
	w.clientsOf(holder)
	time.Sleep(time.Second + time.Duration(w.rng.Int64N(int64(lossExtend))))
	w.note("the registry is down")
	w.db.down.Store(true)
	time.Sleep(hears + time.Second + time.Duration(w.rng.Int64N(int64(lossExtend))))
	w.unmarked()
	w.note("a server takes over that lacks the latest writes, and whose clock is behind")
	w.db.skew.Store(-int64(tolerated))
	w.db.takeOver(before)
	w.db.down.Store(false)
	w.launch(heir)
	w.clientsOf(heir)
	time.Sleep(hears)
}
