package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A lossWorld is a leaseWorld whose registry fails over and loses writes. It keeps the protocol's
// conditions: a holder of a worker ID hears of a fail-over within two extensions. Other nodes may be
// paused or cut off for any time.
type lossWorld struct {
	*leaseWorld
	kept  []memory.Snapshot // what servers have that may take over, the oldest first
	wrong time.Duration     // by so much the clock of a server may be off
}

const (
	tolerated  = 4500 * time.Millisecond // of worker.DefaultTolerance
	farAhead   = 12 * time.Second        // the limit of the first machine's layouts
	claimDelay = 2*lossExtend + farAhead + worker.DefaultTolerance
	lossExtend = 2 * time.Second
	hears      = 2 * lossExtend // after a fail-over, the holder of a worker ID
)

func newLossWorld(seed uint64, sabotage string) *lossWorld {
	w := &lossWorld{leaseWorld: &leaseWorld{world: newWorld(seed, sabotage, 3), pause: 80 * time.Millisecond}}
	rng := w.random("world")
	w.layouts = []snowflake.NodeLayout{{
		Name: "layout0",
		Layout: snowflake.Layout{
			Epoch: epoch, Tick: []time.Duration{10 * time.Millisecond, time.Second}[rng.IntN(2)],
			TimeBits: 40, WorkerBits: rng.IntN(3), SequenceBits: 4 + rng.IntN(3),
		},
		Options: snowflake.Options{MaxAhead: maxAhead, RandomStart: 1}, // two that issue in one tick issue the same
	}}
	w.reserves()
	w.keeper = worker.Options{
		RegistryKey: "simulated", Horizon: []time.Duration{3*lossExtend + worker.DefaultTolerance, leaseHorizon}[rng.IntN(2)], Extend: lossExtend, CallTimeout: time.Second,
	}
	if w.far = rng.IntN(3) == 0; w.far {
		w.keeper.Horizon = leaseHorizon // beyond which no machine runs ahead
	}
	w.db.lossy, w.db.unnamed, w.db.untracked = true, rng.IntN(6) == 0, rng.IntN(6) == 0
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

// countDown pauses the process before the chosen call, or reports a pause after it.
func (p *process) countDown() (after bool) {
	p.mu.Lock()
	last, after := p.pauses.at == 1, p.pauses.after
	p.pauses.at = max(0, p.pauses.at-1)
	p.mu.Unlock()
	if !last || p.holds() {
		return false
	}
	if !after {
		p.pause()
	}
	return after
}

// pauseSoon has a holder pause at a point, and returns when it does, or after an extension without one.
func (p *process) pauseSoon(point string) {
	p.mu.Lock()
	p.pauses.point = point
	p.mu.Unlock()
	isPaused := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.paused != nil
	}
	for end := time.Now().Add(2 * lossExtend); !isPaused() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

// pauseAt pauses the process at the chosen point, the first time only.
func (p *process) pauseAt(point string) (paused bool) {
	p.mu.Lock()
	if paused = p.pauses.point == point; paused {
		p.pauses.point = ""
	}
	p.mu.Unlock()
	if paused {
		p.pause()
		_ = p.await()
	}
	return paused
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
	switch do := rng.IntN(18); {
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
	case do == 12:
		w.loseClaim(m)
	case do == 13:
		w.alone(m)
	case p == nil:
		w.replaceDisk(m, rng)
		w.restart(m)
	case do == 14:
		m.away.Store(false)
	default:
		w.act(p, []int{0, 1, 2, 6}[rng.IntN(4)])
	}
}

// loseClaim has the registry lose the claim of a process that issues. Others start at once.
func (w *lossWorld) loseClaim(m *machine) {
	for _, other := range w.machines {
		if p := other.proc.Load(); p != nil && (other == m || w.rng.IntN(2) == 0) {
			p.shutDown()
		}
	}
	w.kept = append(w.kept, w.db.cells.Snapshot())
	w.launch(m)
	time.Sleep(time.Duration(w.rng.Int64N(2 * int64(claimDelay))))
	w.note("a server takes over that lacks the claim of %s", m.name)
	if w.db.untracked && w.random(fmt.Sprint("gap ", w.now())).IntN(2) == 0 {
		w.db.down.Store(true)
		time.Sleep(hears + time.Second)
		w.unmarked()
	}
	w.db.takeOver(w.kept[len(w.kept)-1])
	w.db.down.Store(false)
	w.cutSomeOff()
	w.launchAll()
	time.Sleep(hears)
}

// alone lets a process continue from its state file alone while a server without its lease is the
// primary and others claim the worker ID. Then the former server takes over again, or a server
// without either lease.
func (w *lossWorld) alone(m *machine) {
	p := m.proc.Load()
	if p == nil || !p.holds() {
		return
	}
	next := []memory.Snapshot{w.db.cells.Snapshot(), w.kept[0]}[w.rng.IntN(2)]
	p.kill()
	w.note("%s is cut off from the registry", m.name)
	m.away.Store(true)
	w.launch(m)
	for _, other := range w.machines {
		if p := other.proc.Load(); p != nil && other != m && w.rng.IntN(2) == 0 {
			p.kill()
		}
	}
	w.note("a server takes over that is the oldest")
	w.db.takeOver(w.kept[0])
	w.launchAll()
	time.Sleep(w.claimDelay() + time.Duration(w.rng.Int64N(int64(leaseHorizon-claimDelay))))
	w.note("a server takes over that has been away")
	w.db.takeOver(next)
	m.away.Store(false)
	time.Sleep(hears)
}

// claimDelay is that of the registry.
func (w *lossWorld) claimDelay() time.Duration {
	if w.far {
		return claimDelay
	}
	return claimDelay - farAhead + maxAhead
}

// outage has no server answer for a while.
func (w *lossWorld) outage() {
	w.note("the registry is down")
	w.db.down.Store(true)
	lasted := time.Duration(w.rng.Int64N(int64(claimDelay)))
	time.Sleep(lasted)
	if w.rng.IntN(2) == 0 {
		if w.db.untracked && lasted > hears+time.Second {
			w.unmarked()
		}
		w.takeOver()
	}
	w.note("the registry is back")
	w.db.down.Store(false)
	time.Sleep(hears)
}

// unmarked has the next server that takes over answer under the name of the one before. No node was
// answered for a while before.
func (w *lossWorld) unmarked() {
	w.note("the name of the next server is that of the one before")
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	w.db.renamed++
}

// failOver makes a server without the latest writes take over. Stopped nodes start at once.
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

// takeOver starts the epoch of one of the most recent servers.
func (w *lossWorld) takeOver() {
	back := min(len(w.kept), 1+w.rng.IntN(4))
	w.note("a server takes over that lacks the latest writes")
	if w.wrong > 0 {
		w.db.skew.Store(around(w.wrong, w.rng))
	}
	w.db.takeOver(w.kept[len(w.kept)-back])
}

// startCalls is more than the calls of the database that a start makes.
const startCalls = 12

// ambush pauses a process before a call of its start, after an answer, or between its claim and its
// first ID. Meanwhile others start and issue; then a server takes over without their writes, or
// without those of the process, before the process continues.
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
	m.pauses = []pauses{{at: 1 + rng.IntN(startCalls), after: rng.IntN(2) == 0}, {point: "claim"}, {point: "epoch"}, {point: "clock"}}[rng.IntN(4)]
	if m.pauses.at == startCalls { // a start makes fewer calls
		m.pauses = pauses{point: "hold"}
	}
	w.launch(m)
	m.pauses = pauses{}
	time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
	if rng.IntN(2) == 0 {
		w.kept = append(w.kept, w.db.cells.Snapshot())
	}
	if rng.IntN(2) == 0 {
		w.launchAll()
	}
	switch rng.IntN(3) {
	case 0:
		time.Sleep(time.Duration(rng.Int64N(2 * int64(claimDelay))))
	case 1:
		time.Sleep(w.claimDelay() + time.Duration(rng.Int64N(int64(w.claimDelay()))))
	}
	w.takeOver()
	w.launchAll()
	w.cutSomeOff()
	w.wake(m)
}

// wake continues a paused process: at once, before holders have noticed a fail-over, or after claims
// made since count.
func (w *lossWorld) wake(m *machine) {
	switch w.rng.IntN(3) {
	case 0:
		time.Sleep(time.Duration(w.rng.Int64N(int64(hears))))
	case 1:
		time.Sleep(w.claimDelay() + time.Duration(w.rng.Int64N(int64(claimDelay))))
	}
	if p := m.proc.Load(); p != nil {
		p.resume()
	}
	time.Sleep(hears)
}

// launchAll starts the machines without a process.
func (w *leaseWorld) launchAll() {
	for _, m := range w.machines {
		if m.proc.Load() == nil {
			w.launch(m)
		}
	}
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
	w.launchAll()
	time.Sleep(time.Duration(w.rng.Int64N(2 * int64(claimDelay))))
	if w.rng.IntN(2) == 0 {
		w.takeOver()
	}
	p.resume()
	time.Sleep(hears)
}
