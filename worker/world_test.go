package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// A world is a registry and the nodes that lease worker IDs from it, all in one
// synctest bubble. It knows who issued which time under which worker ID.
type world struct {
	t      testing.TB
	reg    registry
	opts   worker.Options // of every process, but for what is its own
	issued map[[2]int64]string
	doubly []string
	nodes  []*node
	boots  int

	fault atomic.Pointer[func(old, next worker.Record) swapFault] // of the next swaps; nil: none
	down  atomic.Bool                                             // the registry does not answer
	lossy atomic.Bool                                             // the registry says that it may lose writes
	epoch atomic.Int64                                            // the number of its incarnation

	untracked atomic.Bool // others may answer within one incarnation
	unnamed   atomic.Bool // no incarnation is known

	asked atomic.Pointer[func(*process)] // is called after each question for the incarnation or the time

	mu   sync.Mutex
	late []func() // swaps still on their way

	synced atomic.Pointer[memory.Snapshot] // while the registry's disk hangs: what is on it
}

// plan has fault decide on the next swaps.
func (w *world) plan(fault func(old, next worker.Record) swapFault) { w.fault.Store(&fault) }

// failOver has the registry lose all writes since: a new server epoch begins.
func (w *world) failOver(since memory.Snapshot) {
	w.reg.Backend.Restore(since)
	w.epoch.Add(1)
}

// arrive delivers the late swaps.
func (w *world) arrive() {
	w.mu.Lock()
	late := w.late
	w.late = nil
	w.mu.Unlock()
	for _, swap := range late {
		swap()
	}
}

// A swapFault is the fault of a swap.
type swapFault int

const (
	swapWorks swapFault = iota
	swapLost            // the request never arrives
	replyLost           // it arrives, the answer does not
	swapLate            // it arrives after the caller has given up
	foreign             // the registry has noticed another node
)

var errNetwork = errors.New("the network is down")

func newWorld(t testing.TB, nodes int) *world {
	w := &world{t: t, reg: newRegistry(), issued: make(map[[2]int64]string)}
	w.opts = worker.Options{
		Layouts: []worker.ServedLayout{{Name: "leaf", Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}},
		Horizon: 30 * time.Second, Extend: 2 * time.Second, CallTimeout: time.Second,
	}
	for i := range nodes {
		w.nodes = append(w.nodes, &node{w: w, name: fmt.Sprintf("n%d", i), disk: w.newDisk()})
	}
	return w
}

// issue notes that who has issued a time, which no process may have issued before.
func (w *world) issue(id, time int64, who string) {
	cell := [2]int64{id, time}
	if before, ok := w.issued[cell]; ok {
		w.doubly = append(w.doubly, fmt.Sprintf("time %d of worker %d was issued by %s and by %s", time, id, before, who))
	}
	w.issued[cell] = who
}

// check fails if anything was issued twice.
func (w *world) check() error {
	if len(w.doubly) > 0 {
		return fmt.Errorf("%d times were issued twice; the first: %s", len(w.doubly), w.doubly[0])
	}
	return nil
}

// A disk is a state file. All written content survives a kill; only synced content
// survives a crash of the machine.
type disk struct {
	mu              sync.Mutex
	cached, durable []byte
	identity        string
	broken          atomic.Bool // writes fail
}

func (w *world) newDisk() *disk {
	w.boots++
	return &disk{identity: fmt.Sprint("disk ", w.boots)}
}

// copyDisk returns what cp -a makes of d: another file.
func (w *world) copyDisk(d *disk) *disk {
	c := w.newDisk()
	d.mu.Lock()
	defer d.mu.Unlock()
	c.cached, c.durable = slices.Clone(d.cached), slices.Clone(d.cached)
	return c
}

// reboot is a crash of the machine.
func (w *world) reboot(d *disk) {
	w.boots++
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cached, d.identity = slices.Clone(d.durable), fmt.Sprint("disk ", w.boots)
}

// A node is a machine with a disk and a clock, and at most one process.
type node struct {
	w     *world
	name  string
	disk  *disk
	skew  atomic.Int64 // nanoseconds
	away  atomic.Bool  // from the registry
	proc  *process
	count int

	registry worker.Registry // nil: the world's
}

// A process is one start of a keeper with one generator.
type process struct {
	*node
	name   string
	keeper *worker.Keeper
	gen    *generator
	cancel context.CancelFunc
	ended  chan error
	dead   chan struct{} // closed by a kill

	mu     sync.Mutex
	paused chan struct{} // closed when it goes on; nil: it runs
}

// start starts a process on n.
func (n *node) start(change ...func(*worker.Options)) *process {
	n.count++
	begin := time.Now()
	p := &process{node: n, name: fmt.Sprintf("%s.%d", n.name, n.count), ended: make(chan error, 1), dead: make(chan struct{})}
	p.gen = &generator{p: p, ahead: 2000}
	opts := n.w.opts
	opts.Owner = p.name
	opts.Clock = worker.NewClockFrom(
		func() time.Time { return time.Now().Add(time.Duration(n.skew.Load())) },
		func() time.Duration { return time.Since(begin) })
	p.gen.clock = opts.Clock
	opts.LeaseUsers = []worker.LeaseUser{p.gen}
	opts.State, opts.RegistryKey = worker.NewStateFile(&handle{p, n.disk}, n.disk.identity), "memory"
	for _, c := range change {
		c(&opts)
	}
	var reg worker.Registry = &port{p}
	if n.registry != nil {
		reg = n.registry
	}
	var err error
	if p.keeper, err = worker.NewKeeper(reg, &opts); err != nil {
		n.w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- p.keeper.Run(ctx) }()
	n.proc = p
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.resume()
	close(p.dead)
	p.cancel()
	<-p.ended
	if p.node.proc == p {
		p.node.proc = nil
	}
}

// stop ends it in order.
func (p *process) stop() error {
	p.resume()
	p.cancel()
	err := <-p.ended
	if p.node.proc == p {
		p.node.proc = nil
	}
	return err
}

func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// await waits until the process runs, and reports whether it lives.
func (p *process) await() bool {
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
		return false
	default:
		return true
	}
}

// A handle is a disk as one process sees it.
type handle struct {
	p *process
	d *disk
}

func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if off >= int64(len(h.d.cached)) {
		return 0, io.EOF
	}
	n := copy(b, h.d.cached[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(b []byte, off int64) (int, error) {
	if !h.p.await() {
		return 0, io.ErrClosedPipe
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.broken.Load() {
		return 0, io.ErrShortWrite
	}
	if missing := int(off) + len(b) - len(h.d.cached); missing > 0 {
		h.d.cached = append(h.d.cached, make([]byte, missing)...)
	}
	return copy(h.d.cached[off:], b), nil
}

func (h *handle) Sync() error {
	if !h.p.await() {
		return io.ErrClosedPipe
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.broken.Load() {
		return io.ErrShortWrite
	}
	h.d.durable = slices.Clone(h.d.cached)
	return nil
}

// A port is the registry as one process sees it.
type port struct{ p *process }

func (r *port) reach(ctx context.Context) error {
	if !r.p.await() || r.p.w.down.Load() || r.p.away.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return ctx.Err()
}

func (r *port) Load(ctx context.Context, id int64) (worker.Record, error) {
	if err := r.reach(ctx); err != nil {
		return worker.Record{}, err
	}
	return r.p.w.reg.Load(ctx, id)
}

func (r *port) Swap(ctx context.Context, old, next worker.Record) (worker.Record, error) {
	if err := r.reach(ctx); err != nil {
		return worker.Record{}, err
	}
	w, fault := r.p.w, swapWorks
	if plan := w.fault.Load(); plan != nil {
		fault = (*plan)(old, next)
	}
	switch fault {
	case swapLost:
		return worker.Record{}, errNetwork
	case foreign:
		return worker.Record{}, worker.ErrTaken
	case replyLost:
		_, _ = w.reg.Swap(ctx, old, next)
		return worker.Record{}, errNetwork
	case swapLate:
		w.mu.Lock()
		w.late = append(w.late, func() { _, _ = w.reg.Swap(context.Background(), old, next) })
		w.mu.Unlock()
		return worker.Record{}, errNetwork
	}
	hangs := w.synced.Load() != nil
	if now, err := w.reg.Swap(ctx, old, next); err != nil || !hangs {
		return now, err
	}
	return worker.Record{}, errNetwork
}

func (r *port) List(ctx context.Context) ([]worker.Record, error) {
	if err := r.reach(ctx); err != nil {
		return nil, err
	}
	return r.p.w.reg.List(ctx)
}

func (r *port) Clock(ctx context.Context) (time.Time, error) {
	if err := r.reach(ctx); err != nil {
		return time.Time{}, err
	}
	defer r.p.told()
	return r.p.w.reg.Clock(ctx)
}

func (p *process) told() {
	if asked := p.w.asked.Load(); asked != nil {
		(*asked)(p)
	}
}

func (r *port) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	if err := r.reach(ctx); err != nil {
		return worker.ServerEpoch{}, err
	}
	defer r.p.told()
	w := r.p.w
	if w.unnamed.Load() {
		return worker.ServerEpoch{Lossy: w.lossy.Load()}, nil
	}
	return worker.ServerEpoch{Lossy: w.lossy.Load(), Incarnation: fmt.Sprint("epoch ", w.epoch.Load()), Untracked: w.untracked.Load()}, nil
}

// A generator issues times, one by one, as package snowflake issues ticks.
type generator struct {
	p     *process
	clock *worker.Clock
	ahead int64

	mu       sync.Mutex
	lease    *worker.Lease
	cursor   int64 // the next free time
	used     bool
	reserved [][2]int64 // by callers that have not answered yet
	why      error
}

func (g *generator) Begin(l *worker.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lease, g.cursor, g.used = l, l.Floor().UnixMilli(), false
}

func (g *generator) Seal(why error) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.why = why
	if g.lease == nil {
		return time.Time{}
	}
	g.lease = nil
	if !g.used {
		return time.Time{}
	}
	return time.UnixMilli(g.cursor)
}

// Where a generator takes its next times from. The protocol must hold for every choice between the
// floor and the limit.
type place int

const (
	byClock place = iota
	atCursor
	atLimit
)

// reserve takes up to n times and reports how many it got.
func (g *generator) reserve(n int, at place) (got int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lease == nil {
		return 0
	}
	now, limit := g.clock.Now().UnixMilli(), g.lease.Limit().UnixMilli()
	g.lease.Need(time.UnixMilli(now + g.ahead))
	switch at {
	case byClock:
		g.cursor, limit = max(g.cursor, now), min(limit, now+g.ahead)
	case atLimit:
		g.cursor = max(g.cursor, limit-int64(n))
	}
	for ; got < n && g.cursor < limit; got++ {
		g.reserved = append(g.reserved, [2]int64{g.lease.Worker(), g.cursor})
		g.cursor++
		g.used = true
	}
	return got
}

// answer issues what callers have reserved.
func (g *generator) answer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cell := range g.reserved {
		g.p.w.issue(cell[0], cell[1], g.p.name)
	}
	g.reserved = nil
}

// issue asks for n times, waiting for the limit for up to a second, and reports how
// many it got.
func (p *process) issue(n int) (got int) {
	for range 100 {
		got += p.gen.reserve(n-got, byClock)
		p.gen.answer()
		if got == n {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return got
}

// inBubble runs a test in a world of its own, and ends its nodes.
func inBubble(t *testing.T, nodes int, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nodes)
		defer w.end()
		test(t, w)
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// end kills what still runs.
func (w *world) end() {
	for _, n := range w.nodes {
		if n.proc != nil {
			n.proc.kill()
		}
	}
}
