package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A leaseWorld is nodes that lease worker IDs and make IDs of the time.
type leaseWorld struct {
	*world
	layouts []snowflake.NodeLayout
	keeper  worker.Options // of every process, without its own settings
	pause   time.Duration  // of a client between its calls, at least; 0: 35 ms
	clocks  bool           // clocks are set while nodes run
	skewed  bool           // clocks are off by almost as much as is tolerated
	far     bool           // the first machine runs further ahead, as in another data centre
	mixed   bool           // the machines do not mean the same by a layout's name
	renamed bool           // and the first one calls it by another name, which callers do not say
	older   bool           // and the others do not record which layout is the default one

	mu     sync.Mutex
	broken []error // promises of the keeper, apart from unique IDs
}

var epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	leaseHorizon = 30 * time.Second
	maxAhead     = 2 * time.Second
)

func newLeaseWorld(seed uint64, sabotage string) *leaseWorld {
	w := &leaseWorld{world: newWorld(seed, sabotage, 3)}
	rng := w.random("world")
	bits := rng.IntN(3)
	for i := range 1 + rng.IntN(2) {
		tick := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}[rng.IntN(3)]
		w.layouts = append(w.layouts, snowflake.NodeLayout{
			Name: fmt.Sprint("layout", i),
			Layout: snowflake.Layout{
				Epoch: epoch, Tick: tick,
				TimeBits: 40, WorkerBits: bits, SequenceBits: 4 + rng.IntN(6) + i,
			},
			Options: snowflake.Options{MaxAhead: maxAhead, RandomStart: rng.Int64N(2)}, // 1: two that issue in one tick issue the same
		})
	}
	w.reserves()
	w.clocks, w.mixed = rng.IntN(2) == 0, rng.IntN(8) == 0
	defaults := w.random("defaults")
	w.renamed = w.mixed && defaults.IntN(2) == 0
	w.older = w.renamed && defaults.IntN(2) == 0
	w.keeper = worker.Options{
		RegistryKey: "simulated", Horizon: leaseHorizon, Extend: 2 * time.Second, CallTimeout: time.Second,
		Reclaim: rng.IntN(4) == 0,
	}
	if !w.keeper.Reclaim && rng.IntN(2) == 0 {
		w.keeper.Horizon = 3 * w.keeper.Extend
	}
	if rng.IntN(2) == 0 {
		w.db.cells.SetClock(time.Now)
	}
	if w.clocks && rng.IntN(3) > 0 {
		w.keeper.Tolerance = 3 * time.Hour
	}
	db := kv.New(direct{w.db.cells, w.db}, nil)
	err := db.InitRegistry(context.Background())
	if w.older { // older processes do not compare the layouts of later ones
		_, failed := db.Registry().Swap(context.Background(), worker.Record{}, w.initial(0))
		err = errors.Join(err, failed)
	}
	if err != nil {
		panic(err) // the memory is always there
	}
	for _, m := range w.machines {
		m.disk = w.newDisk()
	}
	return w
}

// reserves gives some layouts a reserve, as uid mode has one. Its IDs are older than the clock.
func (w *leaseWorld) reserves() {
	rng := w.random("reserves")
	for i := range w.layouts {
		if rng.IntN(3) == 0 {
			w.layouts[i].Options.Reserve = snowflake.Reserve{Size: 1 << rng.IntN(10)}
		}
	}
}

// initial returns the record of a worker ID before the first claim.
func (w *leaseWorld) initial(id int64) worker.Record {
	r := worker.Record{Worker: id}
	if w.older && id == 0 {
		r.Term, r.Layouts = 1, []worker.ServedLayout{w.layouts[0].Record(w.layouts[0].Name)}
	}
	return r
}

// A leaseServer runs in a process: a node. It records its registry's answers.
type leaseServer struct {
	*kv.Registry
	p     *process
	w     *leaseWorld
	db    *kv.DB
	node  *snowflake.Node
	clock *worker.Clock

	layouts []snowflake.NodeLayout // the first one is the default

	calls atomic.Int64 // of clients
	held  struct {     // the last lease
		instance worker.Instance
		ahead    time.Duration // of the registry's clock, at first
	}

	asked  worker.ServerEpoch  // for a saboteur: the last answer,
	judged *worker.ServerEpoch // and the next answer
}

func (w *leaseWorld) launch(m *machine) {
	p := m.launch()
	s := &leaseServer{p: p, w: w, db: kv.New(w.backend(p), nil)}
	s.Registry = s.db.Registry()
	p.serve = s
	begin := time.Now()
	s.clock = worker.NewClockFrom(m.wall, func() time.Duration { return time.Since(begin) })
	opts := w.keeper
	opts.Clock, opts.Owner = s.clock, p.name
	opts.State = worker.NewStateFile(&handle{p, m.disk}, m.disk.identity)
	s.layouts = w.layoutsOf(m)
	var err error
	if s.node, err = snowflake.NewNode(s, &snowflake.NodeOptions{Layouts: s.layouts, Keeper: opts}); err != nil {
		w.remark("%s does not start: %v", p.name, err)
		return
	}
	m.proc.Store(p)
	s.node.Start()
}

func (s *leaseServer) stop(context.Context) error {
	return errors.Join(s.node.Close(context.Background()), s.db.Close())
}

func (s *leaseServer) take(ctx context.Context, layout string, rng *rand.Rand) (got answer, err error) {
	got.clockBegin = s.clock.Now().UnixMilli()
	g := s.node.Generator(layout)
	if layout == s.w.layouts[0].Name { // of callers without a layout
		g = s.node.Generator(s.layouts[0].Name)
	}
	got.ranges, err = s.takeFrom(ctx, g, 1+rng.IntN(1<<rng.IntN(7)))
	got.clockEnd = s.clock.Now().UnixMilli()
	return got, err
}

// takeFrom uses the ways to take IDs in turn.
func (s *leaseServer) takeFrom(ctx context.Context, g *snowflake.Generator, n int) ([]leaf.Range, error) {
	switch s.calls.Add(1) % 4 {
	case 0:
		id, err := g.Next(ctx)
		return []leaf.Range{{Start: id, End: id + 1}}, err
	case 1:
		r, err := g.TakeContiguous(ctx, min(n, int(g.Layout().MaxSequence()+1)/4))
		return []leaf.Range{r}, err
	default:
		return g.Take(ctx, nil, n)
	}
}

func text(r worker.Record) string {
	text, err := r.MarshalText()
	if err != nil {
		panic(err) // a record always has a text
	}
	return string(text)
}

func cellName(id int64) string { return strconv.FormatInt(id, 10) }

// Load forwards to the registry and records the call.
func (s *leaseServer) Load(ctx context.Context, id int64) (worker.Record, error) {
	begin := s.w.now()
	r, err := s.Registry.Load(ctx, id)
	if err == nil {
		s.w.opsOf(cellName(id)).Load(begin, s.w.now(), text(r))
	}
	return r, err
}

// Swap forwards to the registry and records the call.
func (s *leaseServer) Swap(ctx context.Context, old, next worker.Record) (worker.Record, error) {
	begin, off := s.w.now(), s.offset()
	if next.Term == old.Term {
		var cancel context.CancelFunc
		ctx, cancel = s.pauseBefore(ctx, "swap")
		defer cancel()
	}
	now, err := s.Registry.Swap(ctx, old, next)
	if next.Term == old.Term && s.p.pauseAt("swapped") {
		err = cmp.Or(s.p.await(), err)
	}
	if err == nil && next.Held() {
		s.bounded(old, next, min(off, s.offset()))
	}
	if next.Term > old.Term && next.Held() {
		s.claimed()
		s.p.pauseAt("claim")
	}
	outcome := lab.Done
	switch {
	case errors.Is(err, worker.ErrConflict):
		outcome = lab.Conflict
	case err != nil:
		outcome = lab.Unknown
	}
	s.w.opsOf(cellName(next.Worker)).Swap(begin, s.w.now(), text(old), text(next), outcome)
	return now, err
}

// offset is how far the clocks of the process and of the registry differ; 0 if it has none.
func (s *leaseServer) offset() time.Duration {
	registry, _ := s.w.db.cells.Clock(context.Background())
	if registry.IsZero() {
		return 0
	}
	return s.clock.Now().Sub(registry).Abs()
}

// bounded compares a granted horizon with the registry's clock, and a claimer's clock, too.
func (s *leaseServer) bounded(old, next worker.Record, off time.Duration) {
	registry, _ := s.w.db.cells.Clock(context.Background())
	if registry.IsZero() || s.w.db.lossy { // which may set that clock at any time
		return
	}
	tolerance := cmp.Or(s.w.keeper.Tolerance, worker.DefaultTolerance)
	if next.Term > old.Term && off > tolerance+2*time.Second {
		s.w.breach("%s claimed worker ID %d by a clock that is off by %v", s.p.name, next.Worker, off)
	}
	if s.held.instance != next.Instance {
		s.held.instance, s.held.ahead = next.Instance, old.Horizon.Sub(registry)
	}
	if next.Term > old.Term {
		s.held.ahead = next.Horizon.Sub(registry)
	}
	most := max(2*s.w.keeper.Horizon, s.held.ahead)
	if ahead := next.Horizon.Sub(registry); next.Horizon.After(old.Horizon) && ahead > most+2*time.Second {
		s.w.breach("%s has a lease that reaches %v beyond the registry's time", s.p.name, ahead)
	}
}

// breach records a broken promise.
func (w *leaseWorld) breach(format string, args ...any) {
	w.remark(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Errorf(format, args...))
}

// Watch forwards to the registry. A process calls it before its first ID.
func (s *leaseServer) Watch(ctx context.Context, id int64) (<-chan struct{}, error) {
	s.p.pauseAt("hold")
	return s.Registry.Watch(ctx, id)
}

// Clock forwards to the registry.
func (s *leaseServer) Clock(ctx context.Context) (time.Time, error) {
	ctx, cancel := s.pauseBefore(ctx, "clock")
	defer cancel()
	now, err := s.Registry.Clock(ctx)
	if s.p.pauseAt("time") {
		err = errors.Join(err, s.p.await())
	}
	return now, err
}

// pauseBefore pauses the process before a chosen call. The time limit of the call
// begins afterwards.
func (s *leaseServer) pauseBefore(ctx context.Context, call string) (context.Context, context.CancelFunc) {
	if s.p.pauseAt(call) {
		return context.WithTimeout(context.WithoutCancel(ctx), s.w.keeper.CallTimeout)
	}
	return ctx, func() {}
}

// run carries out the schedule.
func (w *leaseWorld) run() {
	for _, m := range w.machines {
		w.launch(m)
		w.clientsOf(m)
	}
	for range 10 + w.rng.IntN(30) {
		w.action(w.machines[w.rng.IntN(len(w.machines))])
		time.Sleep(time.Duration(w.rng.Int64N(int64(100*time.Millisecond) << w.rng.IntN(9))))
	}
	w.heal()
}

// explained searches for an order of recorded calls, if there are any. It counts the search, and leaves
// out that it took too long.
func (w *world) explained(ops *lab.Ops, search func(*lab.Ops) error) error {
	if ops.Len() == 0 {
		return nil
	}
	w.searches++
	err := search(ops)
	if errors.Is(err, lab.ErrUndecided) {
		w.undecided++
		return nil
	}
	return err
}

// clientsOf starts the clients of a machine.
func (w *leaseWorld) clientsOf(m *machine) {
	for c := range 2 {
		name := fmt.Sprintf("c%d@%s", c, m.name)
		w.client(name, cmp.Or(w.pause, 35*time.Millisecond)<<w.rng.IntN(3), func(rng *rand.Rand) {
			m.call(name, w.layouts[rng.IntN(len(w.layouts))].Name, rng)
		})
	}
}

func (w *leaseWorld) action(m *machine) {
	rng := w.rng
	if p := m.proc.Load(); p == nil {
		w.replaceDisk(m, rng)
		w.restart(m)
		return
	} else if m.away.Load() && rng.IntN(2) == 0 {
		w.note("%s reaches the registry again", m.name)
		m.away.Store(false)
		return
	} else if do := rng.IntN(14); do < 7 {
		w.act(p, do)
		return
	}
	switch rng.IntN(8) {
	case 0:
		w.note("the network loses %d of 1000 messages", w.setWeather(rng))
	case 1:
		w.note("messages take up to %v", w.setSlow(time.Millisecond<<rng.IntN(11)))
	case 2:
		down := !w.db.down.Load()
		w.note("the registry is down: %v", down)
		w.db.down.Store(down)
	case 3:
		broken := !m.disk.broken.Load()
		w.note("the disk of %s is broken: %v", m.name, broken)
		m.disk.broken.Store(broken)
	case 4, 5:
		if w.clocks {
			w.setClock(m, rng)
		}
	case 6:
		w.outlive(m)
	case 7:
		w.hang(m)
	}
}

// restart starts a machine, sometimes one that cannot ask the registry.
func (w *leaseWorld) restart(m *machine) {
	if m.away.Store(w.rng.IntN(3) == 0); m.away.Load() {
		w.note("%s is cut off from the registry", m.name)
	}
	w.launch(m)
}

func (w *world) setSlow(slow time.Duration) time.Duration {
	w.db.slow.Store(int64(slow))
	return slow
}

// heal ends all faults.
func (w *leaseWorld) heal() {
	w.endFaults()
	w.db.weather.Store(0)
	w.db.down.Store(false)
	w.db.slow.Store(int64(2 * time.Millisecond))
	for _, m := range w.machines {
		m.away.Store(false)
		m.deaf.Store(0)
		m.skew.Store(0)
		m.disk.broken.Store(false)
		if p := m.proc.Load(); p != nil {
			p.resume()
		} else {
			w.launch(m)
		}
	}
	time.Sleep(w.recovery())
	w.well = w.now()
	time.Sleep(10 * time.Second)
	w.end(func(m *machine) { m.proc.Load().shutDown() })
}

// serves reports whether every client has to be served in the end: no clock was wrong, and worker IDs
// suffice.
func (w *leaseWorld) serves() bool {
	return !w.clocks && !w.mixed && !w.skewed && w.layouts[0].MaxWorker() >= int64(len(w.machines))
}

// recovery is how long it takes at most until every client is served again. Only one saboteur is
// noticed by that.
func (w *leaseWorld) recovery() time.Duration {
	switch longest := leaseHorizon + 15*time.Second; {
	case w.sabotage != "" && !w.sabotaged("W10 claim"), !w.serves():
		return 5 * time.Second
	case w.db.lossy:
		return longest + claimDelay
	default:
		return longest
	}
}

// check looks at all that happened.
func (w *leaseWorld) check() error {
	errs := append(w.broken, w.history.Unique(), w.history.Ordered())
	if w.serves() {
		errs = append(errs, w.history.CheckSilence(w.well, w.well+10*time.Second, 5*time.Second, w.names...))
	}
	for _, l := range w.layouts {
		if w.mixed {
			break
		}
		errs = append(errs, w.history.Timely(l.Name, w.bound(l)))
	}
	for id := range w.layouts[0].MaxWorker() + 1 {
		if w.db.lossy { // the registry forgets, and no order explains that
			break
		}
		errs = append(errs, w.explained(w.opsOf(cellName(id)), func(o *lab.Ops) error { return o.CheckCell(text(w.initial(id))) }))
	}
	return errors.Join(errs...)
}

// bound limits the time of an ID. A set clock moves the generator's between two of its turns, so
// bound has no lower limit then.
func (w *leaseWorld) bound(l snowflake.NodeLayout) lab.TimeBound {
	behind, ahead := int64(50), maxAhead
	if w.far {
		ahead = farAhead
	}
	if w.clocks || w.skewed || l.Options.Reserve.Size > 0 {
		behind = 1 << 60
	}
	return lab.TimeBound{
		Ahead: ahead.Milliseconds(), Behind: behind,
		Ticks: func(id int64) (start, end int64) {
			parts, err := l.Decode(id)
			if err != nil {
				panic(err) // a generator made this ID
			}
			return parts.Time.UnixMilli(), parts.Time.Add(l.Tick).UnixMilli()
		},
	}
}
