package sim

import (
	"math/rand/v2"
	"time"
)

// act does something to a process.
func (w *leaseWorld) act(p *process, do int) {
	switch do {
	case 0:
		p.kill()
	case 1:
		p.kill()
		time.Sleep(time.Duration(w.rng.Int64N(int64(100 * time.Millisecond))))
		w.launch(p.machine)
	case 2:
		p.shutDown()
		if w.rng.IntN(2) == 0 {
			w.restart(p.machine)
		}
	case 3:
		p.pause()
	case 4, 5:
		p.resume()
	case 6:
		w.reboot(p)
	}
}

// reboot has a machine crash. It may have been cut off before, so that its file went on and its
// record did not.
func (w *leaseWorld) reboot(p *process) {
	if w.rng.IntN(2) == 0 {
		w.note("%s is cut off from the registry", p.machine.name)
		p.away.Store(true)
		time.Sleep(time.Duration(w.rng.Int64N(int64(10 * time.Second))))
		p.away.Store(false)
	}
	p.kill()
	w.note("%s reboots", p.machine.name)
	w.crash(p.disk)
	if w.rng.IntN(2) == 0 {
		w.launch(p.machine)
	}
}

// replaceDisk may have a machine start from an empty disk, or from a copy of another one's.
func (w *leaseWorld) replaceDisk(m *machine, rng *rand.Rand) {
	switch other := w.machines[rng.IntN(len(w.machines))]; rng.IntN(6) {
	case 0:
		w.note("the disk of %s is emptied", m.name)
		m.disk = w.newDisk()
	case 1:
		if !w.keeper.Reclaim { // Reclaim promises that no copies exist
			w.note("%s gets a copy of the disk of %s", m.name, other.name)
			m.disk = w.copyOf(other.disk)
		}
	}
}

// setClock sets a machine's wall clock, once or back and forth.
func (w *leaseWorld) setClock(m *machine, rng *rand.Rand) {
	steps := []time.Duration{5 * time.Millisecond, time.Second, 10 * time.Second, time.Hour}
	step := steps[rng.IntN(len(steps))]
	if rng.IntN(2) == 0 {
		step = -step
	}
	w.note("the clock of %s is set by %v", m.name, step)
	m.skew.Add(int64(step))
	for range rng.IntN(2) * 10 {
		time.Sleep(100 * time.Millisecond)
		step = -step
		m.skew.Add(int64(step))
	}
}
