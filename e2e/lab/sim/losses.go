package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A lossWorld is a leaseWorld whose registry fails over and loses writes. What the protocol
// asks for then is kept: a node that holds a worker ID hears of a fail-over within two
// extensions. Nodes that hold none are paused and cut off for as long as it takes.
type lossWorld struct {
	*leaseWorld
	kept  []memory.Snapshot // what servers have that may take over, the oldest first
	wrong time.Duration     // by so much the clock of a server may be off
}

const (
	tolerated  = 4500 * time.Millisecond // of worker.DefaultTolerance
	farAhead   = 12 * time.Second        // what the layouts of the first machine may
	claimDelay = 2*lossExtend + farAhead + worker.DefaultTolerance
	lossExtend = 2 * time.Second
	hears      = 2 * lossExtend // after a fail-over, the holder of a worker ID
)

func newLossWorld(seed uint64, sabotage string) *lossWorld {
	w := &lossWorld{leaseWorld: &leaseWorld{world: newWorld(seed, sabotage, 3)}}
	rng := w.random("world")
	w.layouts = []snowflake.NodeLayout{{
		Name: "layout0",
		Layout: snowflake.Layout{
			Epoch: epoch, Tick: []time.Duration{10 * time.Millisecond, time.Second}[rng.IntN(2)],
			TimeBits: 40, WorkerBits: rng.IntN(3), SequenceBits: 4 + rng.IntN(3),
		},
		Options: snowflake.Options{MaxAhead: maxAhead, RandomStart: 1}, // two that issue in one tick issue the same
	}}
	w.keeper = worker.Options{
		RegistryKey: "simulated", Horizon: []time.Duration{3 * lossExtend, leaseHorizon}[rng.IntN(2)], Extend: lossExtend, CallTimeout: time.Second,
	}
	w.far = rng.IntN(3) == 0
	w.db.lossy, w.db.unnamed, w.db.unmarked = true, rng.IntN(6) == 0, rng.IntN(6) == 0
	w.db.cells.SetClock(func() time.Time { return time.Now().Add(time.Duration(w.db.skew.Load())) })
	if w.skewed = rng.IntN(2) == 0; w.skewed && rng.IntN(2) == 0 {
		w.wrong = tolerated
	}
	if err := kv.New(direct{w.db.cells, w.db}, nil).InitRegistry(context.Background()); err != nil {
		panic(err) // the memory is always there
	}
	for _, m := range w.machines {
		m.disk = w.newDisk()
		if w.skewed && w.wrong == 0 {
			m.skew.Store(around(tolerated, rng))
		}
	}
	return w
}

// around draws a time of up to d, before or after, and often close to that.
func around(d time.Duration, rng *rand.Rand) int64 {
	return []int64{-int64(d), int64(d), rng.Int64N(2*int64(d)) - int64(d)}[rng.IntN(3)]
}

// mustHear reports whether the protocol counts on the next calls of a process: it holds a
// worker ID, and another server took over just now.
func (p *process) mustHear() bool {
	return p.w.db.lossy && time.Since(p.w.db.takenOver()) < hears && p.holds()
}

// holds reports whether the process holds a worker ID.
func (p *process) holds() bool {
	s, ok := p.serve.(*leaseServer)
	return ok && s.node != nil && s.node.Keeper().Status().Held
}

// countDown pauses the process before the call that was chosen.
func (p *process) countDown() {
	p.mu.Lock()
	last := p.calls == 1
	p.calls = max(0, p.calls-1)
	p.mu.Unlock()
	if last && !p.holds() {
		p.pause()
	}
}

// run carries out the schedule.
func (w *lossWorld) run() {
	w.kept = []memory.Snapshot{w.db.cells.Snapshot()}
	for i, m := range w.machines {
		w.launch(m)
		if i == 0 && w.far { // its claim delay is known before anything is lost
			time.Sleep(lossExtend)
			w.kept = []memory.Snapshot{w.db.cells.Snapshot()}
		}
		w.clientsOf(m)
	}
	time.Sleep(time.Duration(w.rng.Int64N(int64(2 * claimDelay))))
	for range 5 + w.rng.IntN(20) {
		w.action(w.machines[w.rng.IntN(len(w.machines))])
		time.Sleep(time.Duration(w.rng.Int64N(int64(100*time.Millisecond) << w.rng.IntN(8))))
	}
	w.heal()
}

func (w *lossWorld) action(m *machine) {
	rng, p := w.rng, m.proc.Load()
	switch do := rng.IntN(16); {
	case do < 4:
		w.kept = append(w.kept, w.db.cells.Snapshot())
	case do < 6:
		w.failOver()
	case do < 8:
		w.ambush(m)
	case do == 8:
		w.oversleep(m)
	case do == 9:
		w.note("messages take up to %v", w.setSlow(time.Millisecond<<rng.IntN(6)))
	case do == 10:
		lost := []int64{0, 20, 100}[rng.IntN(3)]
		w.note("the network loses %d of 1000 messages", lost)
		w.db.weather.Store(lost)
	case do == 11:
		w.outage()
	case p == nil:
		w.replaceDisk(m, rng)
		w.restart(m)
	case do == 12:
		m.away.Store(false)
	default:
		w.act(p, []int{0, 1, 2, 6}[rng.IntN(4)])
	}
}

// restart starts a machine, sometimes one that cannot ask the registry.
func (w *lossWorld) restart(m *machine) {
	if m.away.Store(w.rng.IntN(3) == 0); m.away.Load() {
		w.note("%s is cut off from the registry", m.name)
	}
	w.launch(m)
}

// outage has no server answer for a while.
func (w *lossWorld) outage() {
	w.note("the registry is down")
	w.db.down.Store(true)
	time.Sleep(time.Duration(w.rng.Int64N(int64(claimDelay))))
	if w.rng.IntN(2) == 0 {
		w.takeOver()
	}
	w.note("the registry is back")
	w.db.down.Store(false)
	time.Sleep(hears)
}

// failOver has a server take over that lacks the latest writes. Nodes that were down start at
// once.
func (w *lossWorld) failOver() {
	rng := w.rng
	w.takeOver()
	w.cutSomeOff()
	if rng.IntN(3) == 0 {
		w.note("its clock is an hour behind, and is set right")
		right := w.db.skew.Load()
		w.db.skew.Store(right - int64(time.Hour))
		time.Sleep(lossExtend + time.Duration(rng.Int64N(int64(lossExtend/4))))
		w.db.skew.Store(right)
	}
	for _, m := range w.machines {
		if m.proc.Load() == nil && rng.IntN(2) == 0 {
			w.restart(m)
		}
	}
	time.Sleep(hears)
}

// cutSomeOff cuts some machines off from the registry, for almost as long as holders may be.
func (w *lossWorld) cutSomeOff() {
	for _, m := range w.machines {
		if w.rng.IntN(2) == 0 {
			m.deaf.Store(time.Now().Add(lossExtend + 400*time.Millisecond).UnixNano())
		}
	}
}

// takeOver begins the reign of one of the servers that have been kept up to date longest.
func (w *lossWorld) takeOver() {
	back := min(len(w.kept), 1+w.rng.IntN(4))
	w.note("a server takes over that lacks the latest writes")
	if w.wrong > 0 {
		w.db.skew.Store(around(w.wrong, w.rng))
	}
	w.db.takeOver(w.kept[len(w.kept)-back])
}

// ambush pauses a process before some call of its start. Others start and go on meanwhile; then
// a server takes over that lacks what they wrote, or what the process wrote, before that goes on.
func (w *lossWorld) ambush(m *machine) {
	rng := w.rng
	if p := m.proc.Load(); p != nil {
		p.kill()
	}
	for _, other := range w.machines {
		if p := other.proc.Load(); p != nil && rng.IntN(2) == 0 {
			p.shutDown()
		}
	}
	w.db.weather.Store(0)
	w.kept = append(w.kept, w.db.cells.Snapshot())
	m.pauseAt = 1 + rng.IntN(12)
	w.launch(m)
	m.pauseAt = 0
	time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
	if rng.IntN(2) == 0 {
		w.kept = append(w.kept, w.db.cells.Snapshot())
	}
	for _, other := range w.machines {
		if other.proc.Load() == nil {
			w.launch(other)
		}
	}
	time.Sleep(time.Duration(rng.Int64N(2 * int64(claimDelay))))
	w.takeOver()
	w.cutSomeOff()
	longest := []time.Duration{1, hears, 2 * claimDelay}[rng.IntN(3)]
	time.Sleep(time.Duration(rng.Int64N(int64(longest))))
	if p := m.proc.Load(); p != nil {
		p.resume()
	}
	time.Sleep(hears)
}

// oversleep pauses a holder until its lease has run out. Others may claim the worker ID, and
// that may be lost, before it goes on.
func (w *lossWorld) oversleep(m *machine) {
	p := m.proc.Load()
	if p == nil || !p.holds() {
		return
	}
	p.pause()
	w.kept = append(w.kept, w.db.cells.Snapshot())
	time.Sleep(w.keeper.Horizon + time.Second)
	for _, other := range w.machines {
		if other.proc.Load() == nil {
			w.launch(other)
		}
	}
	time.Sleep(time.Duration(w.rng.Int64N(2 * int64(claimDelay))))
	if w.rng.IntN(2) == 0 {
		w.takeOver()
	}
	p.resume()
	time.Sleep(hears)
}

// heal ends all faults.
func (w *lossWorld) heal() {
	for _, m := range w.machines {
		m.away.Store(false)
	}
	w.leaseWorld.heal()
}
