package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/e2e/lab"
)

// A world is a database, machines with at most one process each, and clients, all in one
// synctest bubble.
type world struct {
	seed     uint64
	sabotage string
	rng      *rand.Rand // of the schedule; the main goroutine's
	start    time.Time
	db       *database
	machines []*machine
	history  lab.History
	ops      sync.Map // string → *lab.Ops, by tag or worker
	faults   atomic.Int64
	disks    int // so many were made

	background sync.WaitGroup // writes that arrive late
	clients    sync.WaitGroup
	names      []string
	ended      atomic.Bool   // clients are to end
	well       time.Duration // when everything should work again

	searches, undecided int64 // for an order of the calls to the store

	mu      sync.Mutex
	happens []string
	steps   int64 // that happened before all faults ended
	healed  bool  // they have ended
}

func newWorld(seed uint64, sabotage string, machines int) *world {
	w := &world{seed: seed, sabotage: sabotage, start: time.Now()}
	w.rng = w.random("schedule")
	w.db = newDatabase(w)
	for i := range machines {
		w.machines = append(w.machines, &machine{w: w, name: fmt.Sprintf("m%d", i)})
	}
	return w
}

// random returns a source of its own for each name.
func (w *world) random(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// note records a step of the schedule.
func (w *world) note(format string, args ...any) {
	w.remark(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.healed {
		w.steps++
	}
}

// endFaults has later steps not count as faults.
func (w *world) endFaults() {
	w.mu.Lock()
	w.healed = true
	w.mu.Unlock()
	w.remark("all faults end")
}

// remark records the results of the steps, for people.
func (w *world) remark(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happens = append(w.happens, fmt.Sprintf("%10v  ", w.now().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (w *world) opsOf(name string) *lab.Ops {
	ops, _ := w.ops.LoadOrStore(name, new(lab.Ops))
	return ops.(*lab.Ops)
}

// client runs call again and again, with pauses, until the schedule is over.
func (w *world) client(name string, pause time.Duration, call func(rng *rand.Rand)) {
	rng := w.random("client " + name)
	w.names = append(w.names, name)
	w.clients.Go(func() {
		for w.sleep(time.Duration(rng.Int64N(int64(2 * pause)))) {
			call(rng)
		}
	})
}

// sleep reports whether the schedule continues afterwards.
func (w *world) sleep(d time.Duration) bool {
	time.Sleep(d)
	return !w.ended.Load()
}

// end ends clients, then processes, and waits for all messages on their way.
func (w *world) end(kill func(*machine)) {
	w.ended.Store(true)
	w.resumeAll()
	w.clients.Wait()
	for _, m := range w.machines {
		if m.proc.Load() != nil {
			kill(m)
		}
	}
	w.background.Wait()
}

// resumeAll resumes the paused processes.
func (w *world) resumeAll() {
	for _, m := range w.machines {
		if p := m.proc.Load(); p != nil {
			p.resume()
		}
	}
}

// A machine has a disk and a clock, and at most one process.
type machine struct {
	w     *world
	name  string
	lives int
	proc  atomic.Pointer[process]
	skew  atomic.Int64 // nanoseconds that the wall clock is ahead

	marks    marks
	disk     *disk
	upstream *machine  // of a relay; nil: the database is its store
	own      *database // for a saboteur

	pauses pauses // of the next process

	away atomic.Bool  // from the database
	deaf atomic.Int64 // the same until then, in Unix nanoseconds
}

func (m *machine) cutOff() bool {
	return m.away.Load() || time.Now().UnixNano() < m.deaf.Load()
}

// wall is the machine's wall clock.
func (m *machine) wall() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) }

// pauses say when a process is paused, unless it holds a worker ID.
type pauses struct {
	at    int    // before this call, counted down; 0: not
	after bool   // after the answer of that call instead
	point string // after a "claim", the "answer" about the epoch or that with the "time", before a call for the "epoch" or the "clock", or before or after a "swap" without a claim
}

// A process is one life of a server.
type process struct {
	*machine
	name string
	dead chan struct{} // closed when it was killed, or has stopped

	mu     sync.Mutex
	rng    *rand.Rand
	paused chan struct{} // closed when it goes on; nil: it runs
	pauses pauses

	serve serving
}

// serving is the server in a process.
type serving interface {
	stop(ctx context.Context) error // in good order
	take(ctx context.Context, space string, rng *rand.Rand) (answer, error)
}

// An answer is the result of a process's call, and the reading of its clock.
type answer struct {
	ranges               []leaf.Range
	clockBegin, clockEnd int64
	unordered            bool
}

// launch makes the next process of m; its user sets serve and stores it in m.proc.
func (m *machine) launch() *process {
	m.lives++
	name := fmt.Sprintf("%s.%d", m.name, m.lives)
	m.w.note("start %s", name)
	return &process{machine: m, name: name, dead: make(chan struct{}), rng: m.w.random("process " + name), pauses: m.pauses}
}

// kill ends the process as kill -9 does: from now on it changes nothing outside.
func (p *process) kill() {
	p.w.note("kill %s", p.name)
	p.die()
}

func (p *process) die() {
	p.proc.CompareAndSwap(p, nil)
	close(p.dead)
	p.resume()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.serve.stop(ctx) // ends its goroutines; its requests and writes have no effect
}

// shutDown ends it in good order.
func (p *process) shutDown() {
	p.w.note("stop %s", p.name)
	p.resume()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.serve.stop(ctx); err != nil {
		p.w.remark("%s did not stop in order: %v", p.name, err)
	}
	p.proc.CompareAndSwap(p, nil)
	close(p.dead)
}

func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.w.note("pause %s", p.name)
		p.paused = make(chan struct{})
	}
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses = pauses{}
	if p.paused != nil {
		p.w.note("resume %s", p.name)
		close(p.paused)
		p.paused = nil
	}
}

var errDead = errors.New("the process is dead")

// await waits until the process runs; it fails if the process is dead.
func (p *process) await() error {
	p.mu.Lock()
	paused := p.paused
	p.mu.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-p.dead:
		}
	}
	select {
	case <-p.dead:
		return errDead
	default:
		return nil
	}
}

// call makes a client ask the process on m, if it runs, and records the answer.
func (m *machine) call(client, space string, rng *rand.Rand) {
	begin := m.w.now()
	fail := func(err error) {
		m.w.history.Fail(lab.Failure{Client: client, Begin: begin, End: m.w.now(), Err: err})
	}
	p := m.proc.Load()
	if p == nil {
		fail(errDead)
		return
	}
	if err := p.await(); err != nil {
		fail(err)
		return
	}
	limit := &limit{at: time.Now().Add(3 * time.Second)}
	defer limit.stop()
	got, err := p.serve.take(limit, space, rng)
	if dead := p.await(); dead != nil { // the answer never reaches the client
		err = dead
	}
	if err != nil {
		fail(err)
		return
	}
	m.w.history.Add(lab.Receipt{
		Space: space, Server: p.name, Client: client, Unordered: got.unordered, Begin: begin, End: m.w.now(),
		ClockBegin: got.clockBegin, ClockEnd: got.clockEnd,
	}, got.ranges...)
}
