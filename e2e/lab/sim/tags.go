package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// A tagWorld is nodes that hand out the IDs of tags.
type tagWorld struct {
	*world
	tags  []segment.Tag
	opts  segment.SetOptions
	admin *kv.Store // the operator's way, without faults
	lan   *database // the network between relays and their upstreams; see newRelayWorld
	fixed bool      // the operator leaves the tags alone, so that all calls of the store can be explained
	calm  bool      // every server hears of a loss of writes before the next one

	mu    sync.Mutex
	lives []*tagServer

	observed []observation
}

// An observation is that of an operator who told a server of IDs that others issued.
type observation struct {
	tag, server string
	at          time.Duration
	above       int64
}

func newTagWorld(seed uint64, sabotage string) *tagWorld {
	w := &tagWorld{world: newWorld(seed, sabotage, 3)}
	rng := w.random("world")
	for i := range 1 + rng.IntN(2) {
		w.tags = append(w.tags, segment.Tag{Name: fmt.Sprint("tag", i), MaxID: rng.Int64N(1000), Step: 1 + rng.Int64N(100)})
	}
	w.db.lossy, w.calm = rng.IntN(3) == 0, rng.IntN(2) == 0
	w.fixed = !w.db.lossy && rng.IntN(2) == 0 && !w.unrecorded()
	w.opts.Options = segment.Options{
		Policy:       segment.Policy(rng.IntN(2)),
		OutageBudget: []time.Duration{time.Second, time.Minute, 10 * time.Minute}[rng.IntN(3)],
		MaxStock:     200 << rng.IntN(5),
		CallTimeout:  time.Second,
	}
	if !w.calm {
		w.opts.RegressionJump = 1 << 40 // so that two lifts of a counter never meet by chance
	}
	if w.sabotaged("R2 set") {
		w.opts.RegressionJump = 10_000 // so that a few thousand IDs come from one lift to the other
	}
	db := kv.New(direct{w.db.cells, w.db}, nil)
	if err := db.Init(context.Background(), w.tags); err != nil {
		panic(err) // the memory is always there
	}
	w.admin = db.Store()
	w.db.replicate()
	return w
}

// A tagServer runs in a process: a set of tags. It records its store's answers.
type tagServer struct {
	*drivertest.Faulty
	p       *process
	w       *tagWorld
	db      *kv.DB
	set     *segment.Set
	crashed bool
	issued  map[string]int64 // by tag, before the crash
	stock   map[string]int64 // by tag, before the crash
	runs    sync.Map         // by tag, an *atomic.Int64: how many IDs callers of TakeContiguous asked for and did not get
	alarms  int64            // how often it took the store for one that had lost writes
	cursors sync.Map         // those of the clients
}

func (w *tagWorld) launch(m *machine) {
	s := &tagServer{p: m.launch(), w: w}
	s.p.serve = s
	opts := w.opts
	if m.upstream != nil {
		s.Faulty = &drivertest.Faulty{Store: newRelayStore(w, s.p)}
		s.set = segment.NewSet(s.Faulty, &opts)
	} else {
		s.db = kv.New(w.backend(s.p), nil)
		s.Faulty = &drivertest.Faulty{Store: s.db.Store()}
		opts.Memory = &memoryHandle{s.p, &m.marks}
		s.set = segment.NewSet(w.store(s), &opts)
	}
	w.mu.Lock()
	w.lives = append(w.lives, s)
	w.mu.Unlock()
	m.proc.Store(s.p)
}

func (s *tagServer) stop(ctx context.Context) error {
	s.crashed, s.issued, s.stock = ctx.Err() != nil, map[string]int64{}, map[string]int64{}
	for _, t := range s.set.Stats() {
		s.issued[t.Tag], s.stock[t.Tag] = t.Issued, t.Stock-s.unserved(t.Tag).Load()
		s.alarms += t.Regressions
	}
	err := s.set.Close(ctx)
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

func (s *tagServer) take(ctx context.Context, tag string, rng *rand.Rand) (got answer, err error) {
	n := 1 + rng.IntN(1<<rng.IntN(9))
	n = min(n, int(s.w.opts.MaxStock))
	switch rng.IntN(6) {
	case 5:
		got.unordered = true
		var id int64
		id, err = s.cursor(tag, rng).Next(ctx)
		got.ranges = []leaf.Range{{Start: id, End: id + 1}}
	case 0:
		var id int64
		id, err = s.set.Next(ctx, tag)
		got.ranges = []leaf.Range{{Start: id, End: id + 1}}
	case 1:
		var r leaf.Range
		s.unserved(tag).Add(int64(n))
		if r, err = s.set.TakeContiguous(ctx, tag, n); err == nil {
			s.unserved(tag).Add(int64(-n))
		}
		got.ranges = []leaf.Range{r}
		if errors.Is(err, leaf.ErrNotContiguous) { // a relay's loan may be too short
			got.ranges, err = s.set.Take(ctx, tag, nil, n)
		}
	default:
		got.ranges, err = s.set.Take(ctx, tag, nil, n)
	}
	return got, err
}

// cursor returns the cursor over a tag for the client of rng.
func (s *tagServer) cursor(tag string, rng *rand.Rand) *segment.Cursor {
	type key struct {
		tag    string
		client *rand.Rand
	}
	c, _ := s.cursors.LoadOrStore(key{tag, rng}, s.set.Cursor(tag, 8))
	return c.(*segment.Cursor)
}

// unserved is how many IDs callers of TakeContiguous asked for and did not get.
func (s *tagServer) unserved(tag string) *atomic.Int64 {
	n, _ := s.runs.LoadOrStore(tag, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// Advance forwards to the store and records the call.
func (s *tagServer) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	begin := s.w.now()
	grant, err := s.Faulty.Advance(ctx, tag, n)
	if n == 0 {
		n = s.w.step(tag)
	}
	s.w.opsOf(tag).Advance(begin, s.w.now(), n, grant.Range, err)
	return grant, err
}

// Return forwards to the store and records the call.
func (s *tagServer) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	begin := s.w.now()
	err := s.Faulty.Return(ctx, tag, last, start)
	s.w.opsOf(tag).GiveBack(begin, s.w.now(), leaf.Range{Start: start, End: last.Range.End}, err)
	return err
}

func (w *tagWorld) step(name string) int64 {
	for _, t := range w.tags {
		if t.Name == name {
			return t.Step
		}
	}
	return 0
}

// marks is the disk with a machine's memory of counters. Writes survive a kill.
type marks struct {
	mu  sync.Mutex
	tag map[string]map[string]segment.Mark
}

// server returns the remembered server of a tag.
func (m *marks) server(tag string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tag[tag][""].Server
}

// A memoryHandle is marks as one process has them open.
type memoryHandle struct {
	p *process
	m *marks
}

// Recall returns the memory of a tag.
func (h *memoryHandle) Recall(tag string) map[string]segment.Mark {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	known := map[string]segment.Mark{}
	if h.p.w.sabotaged("R2 memory") {
		return known
	}
	maps.Copy(known, h.m.tag[tag])
	return known
}

// Remember replaces the memory of a source of a tag.
func (h *memoryHandle) Remember(tag, source string, mark segment.Mark) error {
	return h.change(tag, func(known map[string]segment.Mark) { known[source] = mark })
}

// Forget drops the memory of a tag.
func (h *memoryHandle) Forget(tag string) error {
	return h.change(tag, func(known map[string]segment.Mark) { clear(known) })
}

func (h *memoryHandle) change(tag string, do func(map[string]segment.Mark)) error {
	if err := h.p.await(); err != nil {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.m.tag == nil {
		h.m.tag = map[string]map[string]segment.Mark{}
	}
	if h.m.tag[tag] == nil {
		h.m.tag[tag] = map[string]segment.Mark{}
	}
	do(h.m.tag[tag])
	return nil
}

// lossBudget is the most IDs of one tag that a crash may cost: the stock, or the first allocation,
// whose size is the tag's own; by Java Leaf's rule two segments. IDs for a caller of TakeContiguous who
// left come on top.
func (w *tagWorld) lossBudget(tag string, granted []leaf.Range) (budget int64) {
	if w.lan != nil { // a loan may be given back while the store is being asked
		budget = w.opts.MaxStock
	}
	if w.opts.Policy == segment.Adaptive {
		return budget + max(w.opts.MaxStock, w.step(tag))
	}
	var sizes []int64
	for _, r := range granted {
		sizes = append(sizes, r.Len())
	}
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-2):] {
		budget += size
	}
	return budget
}

// run carries out the schedule.
func (w *tagWorld) run() {
	for _, m := range w.machines {
		w.launch(m)
		w.warmUp(m)
		for c := range 2 {
			name := fmt.Sprintf("c%d@%s", c, m.name)
			w.client(name, time.Duration(20<<w.rng.IntN(5))*time.Millisecond, func(rng *rand.Rand) {
				m.call(name, w.tags[rng.IntN(len(w.tags))].Name, rng)
			})
		}
	}
	w.db.replicate()
	for range 18 + w.rng.IntN(30) {
		w.action(w.machines[w.rng.IntN(len(w.machines))])
		time.Sleep(time.Duration(w.rng.Int64N(int64(50*time.Millisecond) << w.rng.IntN(7))))
	}
	w.heal()
}

// warmUp has a machine be granted something of each tag: a node that knows nothing cannot
// notice that a store has lost writes.
func (w *tagWorld) warmUp(m *machine) {
	for _, tag := range w.tags {
		m.call("warm-up", tag.Name, w.rng)
	}
}

func (w *tagWorld) action(m *machine) {
	p, rng := m.proc.Load(), w.rng
	switch do := rng.IntN(15); {
	case p == nil:
		w.launch(m)
	case do == 0:
		p.kill()
	case do <= 2:
		p.shutDown()
	case do == 3:
		p.pause()
	case do <= 5:
		p.resume()
	case do == 6:
		w.note("the network loses %d of 1000 messages", w.setWeather(rng))
	case do == 7:
		w.note("messages take up to %v", w.setSlow(time.Millisecond<<rng.IntN(11)))
	case do == 8:
		down := !w.db.down.Load()
		w.note("the database is down: %v", down)
		w.db.down.Store(down)
	case do == 9 && w.db.lossy && (!w.calm || w.db.caughtUp == w.db.epoch && w.allKnow()):
		w.db.failOver()
	case do == 10 && w.db.lossy && (!w.calm || w.allKnow()):
		w.db.replicate()
	case do == 11 && !w.fixed:
		w.alter(rng)
	case do == 12 && !w.fixed && !w.db.lossy:
		w.observe(m, rng)
	case do == 13:
		w.hang(p)
	}
}

// allKnow reports whether every machine has been granted something of every tag by the server
// that is the primary. The guard is no proof where it has not: after a second loss it may lift the
// counter to where another machine has issued since the first.
func (w *tagWorld) allKnow() bool {
	for _, m := range w.machines {
		for _, tag := range w.tags {
			if m.upstream == nil && m.marks.server(tag.Name) != w.db.server() {
				return false
			}
		}
	}
	return true
}

func (w *world) setWeather(rng *rand.Rand) int64 {
	weather := []int64{0, 0, 50, 200, 500}[rng.IntN(5)]
	w.db.weather.Store(weather)
	return weather
}

const largestStep = 200

// alter is an operator at work.
func (w *tagWorld) alter(rng *rand.Rand) {
	tag := w.tags[rng.IntN(len(w.tags))]
	change := segment.Change{Step: new(1 + rng.Int64N(largestStep))}
	w.note("the operator sets the step of %s to %d", tag.Name, *change.Step)
	if _, err := w.admin.Alter(context.Background(), tag.Name, change); err != nil {
		w.remark("which fails: %v", err)
	}
}

// observe is an operator who reports IDs of other issuers to a server. From then on the server does
// not issue them.
func (w *tagWorld) observe(m *machine, rng *rand.Rand) {
	tag := w.tags[rng.IntN(len(w.tags))].Name
	for t, err := range w.admin.Tags(context.Background()) {
		if err == nil && t.Name == tag {
			w.tell(m, tag, max(1, t.MaxID+rng.Int64N(1000)-500))
		}
	}
}

// tell makes a server observe IDs; a relay informs its upstream first. It reports success.
func (w *tagWorld) tell(m *machine, tag string, above int64) bool {
	p := m.proc.Load()
	if p == nil || m.upstream != nil && !w.tell(m.upstream, tag, above) {
		return false
	}
	set := p.serve.(*tagServer).set
	if m.upstream != nil {
		set.Server().DropBelow(tag, above)
	} else if _, err := issuer.NewTags(w.admin, set.Server(), nil).Observe(context.Background(), tag, above-1); err != nil {
		w.remark("%s cannot be told: %v", p.name, err)
		return false
	}
	w.note("the operator has told %s of IDs of %s below %d", p.name, tag, above)
	w.observed = append(w.observed, observation{tag, p.name, w.now(), above})
	return true
}

// recovery is how long a call may hang in a connection that broke before all faults ended:
// a round of calls of package kv.
const recovery = 11 * time.Second

// heal ends all faults and sees that every client is served again.
func (w *tagWorld) heal() {
	w.endFaults()
	w.db.weather.Store(0)
	w.db.down.Store(false)
	w.db.slow.Store(int64(2 * time.Millisecond))
	if w.lan != nil {
		w.lan.weather.Store(0)
	}
	for _, m := range w.machines {
		if p := m.proc.Load(); p != nil {
			p.resume()
		} else {
			w.launch(m)
		}
	}
	time.Sleep(recovery)
	w.well = w.now()
	time.Sleep(10 * time.Second)
	w.end(func(m *machine) { m.proc.Load().shutDown() })
}

// check looks at all that happened.
func (w *tagWorld) check() error {
	errs := []error{w.history.Unique(), w.history.Ordered(), w.history.CheckSilence(w.well, w.well+10*time.Second, 3*time.Second, w.names...)}
	for _, o := range w.observed {
		errs = append(errs, w.history.Above(o.tag, o.server, o.at, o.above))
	}
	errs = append(errs, w.checkAlarms(), w.checkStock())
	for _, tag := range w.tags {
		granted := map[string][]leaf.Range{}
		var lives []lab.Life
		for _, s := range w.lives {
			ranges := s.Granted(tag.Name)
			granted[s.p.name] = ranges
			if s.p.upstream != nil { // its grants have any size
				continue
			}
			lives = append(lives, lab.Life{
				Server: s.p.name, Crashed: s.crashed, Budget: w.lossBudget(tag.Name, ranges) + min(s.unserved(tag.Name).Load(), w.opts.MaxStock),
				Granted: ranges, Returned: s.Returned(tag.Name), Issued: s.issued[tag.Name],
			})
		}
		errs = append(errs, w.history.Within(tag.Name, granted))
		if w.fixed {
			errs = append(errs, w.history.CheckLoss(tag.Name, lives...))
			errs = append(errs, w.explained(w.opsOf(tag.Name), func(o *lab.Ops) error { return o.CheckCounter(tag.MaxID) }))
		}
	}
	return errors.Join(errs...)
}

// checkStock reports a server with a stock above its issued IDs plus two steps. IDs for callers that
// wait for a contiguous range count as issued, and so do those that a relay gave back.
func (w *tagWorld) checkStock() error {
	if w.opts.Policy != segment.Adaptive || w.lan != nil {
		return nil
	}
	for _, s := range w.lives {
		for tag, stock := range s.stock {
			if issued := s.issued[tag]; stock > issued+2*max(w.step(tag), largestStep) {
				return fmt.Errorf("%s held %d IDs of %s, and had issued %d", s.p.name, stock, tag, issued)
			}
		}
	}
	return nil
}

// checkAlarms reports a false alarm: a server suspects lost writes in a store that lost nothing.
func (w *tagWorld) checkAlarms() error {
	for _, s := range w.lives {
		if s.alarms > 0 && w.db.epoch == 0 {
			return fmt.Errorf("%s gave %d false alarms: the store lost nothing", s.p.name, s.alarms)
		}
	}
	return nil
}
