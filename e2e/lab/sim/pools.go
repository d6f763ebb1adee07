package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/worker"
)

// A poolWorld is servers that lease worker IDs of one pool, and programs that make IDs of them.
type poolWorld struct {
	*world
	pool worker.Pool
	kept []memory.Snapshot // what servers of the database have that may take over, the oldest first

	mu     sync.Mutex
	broken []error // promises, apart from unique IDs
}

const (
	poolTTL  = 10 * time.Second
	clockOff = time.Hour // by which a server's clock is sometimes wrong
)

var orders = worker.Pool{Name: "orders", MaxTTL: poolTTL, Layout: worker.ServedLayout{Tick: 1, WorkerBits: 1, SequenceBits: 12}}

func newPoolWorld(seed uint64, sabotage string) *poolWorld {
	w := &poolWorld{world: newWorld(seed, sabotage, 3), pool: orders}
	rng := w.random("world")
	if w.db.lossy = rng.IntN(2) == 0; w.db.lossy {
		w.db.untracked, w.db.nameless = rng.IntN(4) == 0, rng.IntN(2) == 0
	}
	w.db.cells.SetClock(func() time.Time { return time.Now().Add(time.Duration(w.db.skew.Load())) })
	if err := kv.New(direct{w.db.cells, w.db}, nil).InitRegistry(context.Background()); err != nil {
		panic(err) // the memory is always there
	}
	return w
}

// A poolServer runs in a process.
type poolServer struct {
	db    *kv.DB
	pools *worker.Pools
}

func (w *poolWorld) launch(m *machine) {
	p := m.launch()
	s := &poolServer{db: kv.New(w.backend(p), nil)}
	p.serve = s
	begin := time.Now()
	clock := worker.NewClockFrom(m.wall, func() time.Duration { return time.Since(begin) })
	var err error
	if s.pools, err = worker.NewPools(s.db.Registry(), &worker.Options{Owner: p.name, Clock: clock, CallTimeout: time.Second, Extend: 2 * time.Second}); err != nil {
		panic(err) // this registry leases
	}
	m.proc.Store(p)
}

func (s *poolServer) stop(context.Context) error { return s.db.Close() }

func (s *poolServer) take(context.Context, string, *rand.Rand) (answer, error) {
	return answer{}, leaf.ErrUnsupported
}

// breach records a broken promise.
func (w *poolWorld) breach(format string, args ...any) {
	w.remark(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Errorf(format, args...))
}

// A program leases a worker ID and issues times under it.
type program struct {
	w      *poolWorld
	name   string
	rng    *rand.Rand
	lease  *worker.PoolLease // nil: no lease
	cursor int64             // the next free time
	used   time.Time
	former []*program // its leases before; it asks for them again

	via *machine      // its server; nil: any
	off time.Duration // of the clock of the server that answered last
}

// request makes a call of any server. An answer is lost if the server is killed before.
func (p *program) request(do func(ctx context.Context, pools *worker.Pools) error) error {
	m := cmp.Or(p.via, p.w.machines[p.rng.IntN(len(p.w.machines))])
	server := m.proc.Load()
	if server == nil {
		return errDead
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.off = p.w.offset(m)
	err := do(ctx, server.serve.(*poolServer).pools)
	p.off = min(p.off, p.w.offset(m))
	if dead := server.await(); dead != nil {
		return dead
	}
	return err
}

// offset is how far the clocks of a machine and of the database differ.
func (w *poolWorld) offset(m *machine) time.Duration {
	return time.Duration(m.skew.Load() - w.db.skew.Load()).Abs()
}

// got takes up an answer to a claim or a renewal.
func (p *program) got(l worker.PoolLease, epoch int) {
	if p.lease == nil || p.lease.ID() != l.ID() {
		p.cursor, p.used = max(0, l.Floor.UnixMilli()), time.Time{}
	}
	p.lease = &l
	p.w.remark("%s has worker ID %d from %d to %d", p.name, l.Worker, p.cursor, l.Limit.UnixMilli())
	registry := time.Now().Add(time.Duration(p.w.db.skew.Load()))
	if ahead := l.Limit.Sub(registry); (&port{db: p.w.db}).epoch() == epoch && ahead > poolTTL+3*time.Second {
		p.w.breach("a lease of %s reaches %v beyond the registry's time", p.name, ahead)
	}
	if p.off > worker.DefaultTolerance+2*time.Second {
		p.w.breach("%s was granted a lease by a server whose clock is off by %v", p.name, p.off)
	}
	if l.Pool.Layout.SequenceBits != orders.Layout.SequenceBits {
		p.w.breach("%s was granted another layout", p.name)
	}
}

// step is one act of the program.
func (p *program) step(rng *rand.Rand) {
	p.rng = rng
	do := rng.IntN(20)
	switch {
	case p.lease == nil:
		p.claim()
	case do < 7:
		p.renew()
	case do < 8:
		p.release()
	case do < 9:
		p.crash()
	case do < 10:
		time.Sleep(time.Duration(rng.Int64N(int64(2 * poolTTL)))) // it is paused
		p.renew()
	case do < 11 && len(p.former) > 0:
		p.haunt()
	default:
		p.issue()
	}
}

// crash has the program forget its lease, and another one remember it.
func (p *program) crash() {
	if p.w.sabotaged("W12 fork") {
		child := *p
		child.name, child.former = p.name+" after a fork", nil
		p.former = append(p.former, &child)
		return
	}
	p.former = append(p.former, &program{w: p.w, name: p.name + " before", rng: p.rng, lease: p.lease, cursor: p.cursor, used: p.used})
	p.lease = nil
}

// haunt has a program of before ask for its lease again.
func (p *program) haunt() {
	old := p.former[p.rng.IntN(len(p.former))]
	if old.lease == nil {
		return
	}
	old.rng = p.rng
	if p.rng.IntN(4) == 0 {
		old.release()
		return
	}
	if old.renew(); old.lease != nil {
		old.issue()
	}
}

func (p *program) ttl() time.Duration {
	if p.rng.IntN(10) == 0 {
		return 3 * poolTTL // which is refused
	}
	return time.Duration(1+p.rng.IntN(10)) * time.Second
}

func (p *program) claim() {
	ask := worker.PoolClaim{Pool: p.w.pool.Name, TTL: p.ttl(), Holder: strings.TrimSuffix(p.name, "'")}
	switch p.rng.IntN(20) {
	case 0:
		ask.Pool, ask.Layout = "odrers", orders.Layout
	case 1:
		ask.Layout = orders.Layout
		ask.Layout.SequenceBits--
	}
	var l worker.PoolLease
	epoch := (&port{db: p.w.db}).epoch()
	err := p.request(func(ctx context.Context, pools *worker.Pools) (err error) {
		l, err = pools.Claim(ctx, ask)
		return err
	})
	if err == nil {
		if ask.Layout.SequenceBits != 0 && ask.Layout != orders.Layout {
			p.w.breach("%s was granted another layout", p.name)
		}
		p.got(l, epoch)
	}
}

func (p *program) renew() {
	var l worker.PoolLease
	epoch := (&port{db: p.w.db}).epoch()
	err := p.request(func(ctx context.Context, pools *worker.Pools) (err error) {
		l, err = pools.Renew(ctx, p.lease.ID(), p.ttl())
		return err
	})
	switch {
	case err == nil:
		p.got(l, epoch)
	case errors.Is(err, worker.ErrLeaseLost):
		p.issue() // it may, up to the limit
		p.crash()
	}
}

// release ends the lease. The program stops before; it sends the call again if the answer is lost.
func (p *program) release() {
	id, used := p.lease.ID(), p.used
	above := p.rng.IntN(8) == 0
	if above {
		used = p.lease.Limit.Add(time.Hour)
	}
	if p.w.sabotaged("W12 seal") {
		defer p.issue()
	}
	for range 2 {
		err := p.request(func(ctx context.Context, pools *worker.Pools) error { return pools.Release(ctx, id, used) })
		if above && err == nil {
			p.w.breach("%s has released a time above its limit", p.name)
		}
	}
	p.crash()
	if !p.w.sabotaged("W12 seal") {
		p.former[len(p.former)-1].cursor = 1 << 60 // it issues nothing more
	}
}

// issue issues some times of the lease: the next ones, or the last ones.
func (p *program) issue() {
	if p.lease == nil {
		return
	}
	limit := p.lease.Limit.UnixMilli()
	if p.w.sabotaged("W12 program's clock") {
		if now := time.Now().UnixMilli(); now < limit {
			time.Sleep(time.Duration(p.rng.Int64N(int64(2 * poolTTL)))) // after the comparison
			p.cursor, limit = max(p.cursor, time.Now().UnixMilli()), 1<<62
		}
	}
	from := p.cursor
	if p.rng.IntN(2) == 0 {
		from = max(from, limit-1-p.rng.Int64N(1000))
	}
	end := min(from+1+p.rng.Int64N(1<<p.rng.IntN(13)), limit)
	if from >= end {
		return
	}
	p.cursor, p.used = end, time.UnixMilli(end-1)
	at := p.w.now()
	p.w.history.Add(lab.Receipt{Space: fmt.Sprint("worker ", p.lease.Worker), Server: p.name, Client: p.name, Unordered: true, Begin: at, End: at},
		leaf.Range{Start: from, End: end})
}

// run carries out the schedule.
func (w *poolWorld) run() {
	for _, m := range w.machines {
		w.launch(m)
	}
	w.create()
	w.kept = append(w.kept, w.db.cells.Snapshot())
	for i := range 5 {
		p := &program{w: w, name: fmt.Sprint("p", i/2) + strings.Repeat("'", i%2)} // two share a name
		w.client(p.name, 500*time.Millisecond, p.step)
	}
	for range 20 + w.rng.IntN(30) {
		w.action(w.machines[w.rng.IntN(len(w.machines))])
		time.Sleep(time.Duration(w.rng.Int64N(int64(100*time.Millisecond) << w.rng.IntN(8))))
	}
	w.endFaults()
	w.resumeAll()
	time.Sleep(5 * time.Second) // a call on its way may still pause its process, which end resumes
	w.well = w.now()
	w.end(func(m *machine) { m.proc.Load().shutDown() })
}

// create has all servers create the pool at the same time, and then with values that are refused.
func (w *poolWorld) create() {
	short := orders
	short.ClaimDelay = 2 * time.Second
	changed := orders
	changed.MaxTTL *= 2
	var all sync.WaitGroup
	for _, m := range w.machines {
		pools := m.proc.Load().serve.(*poolServer).pools
		all.Go(func() {
			ctx := context.Background()
			if _, err := pools.Create(ctx, short); err == nil {
				if !w.sabotaged("W12 reach") { // whose consequence is another one
					w.breach("a pool was created whose claim delay is too short")
				}
				return
			}
			for {
				if _, err := pools.Create(ctx, orders); err == nil {
					break
				}
			}
			if _, err := pools.Create(ctx, changed); err == nil {
				w.breach("a pool's values were changed")
			}
		})
	}
	all.Wait()
}

func (w *poolWorld) action(m *machine) {
	rng, p := w.rng, m.proc.Load()
	switch do := rng.IntN(16); {
	case p == nil:
		w.launch(m)
	case do == 0:
		p.kill()
	case do == 1:
		p.pause()
	case do < 4:
		p.resume()
	case do == 4:
		w.note("the network loses %d of 1000 messages", w.setWeather(rng))
	case do == 5:
		w.note("messages take up to %v", w.setSlow(time.Millisecond<<rng.IntN(10)))
	case do == 6:
		m.skew.Store([]int64{0, around(2*time.Second, rng), int64(clockOff), -int64(clockOff)}[rng.IntN(4)])
		w.note("the clock of %s is off by %v", m.name, time.Duration(m.skew.Load()))
	case do < 9:
		w.kept = append(w.kept, w.db.cells.Snapshot())
	case do == 9 && w.db.lossy:
		if w.db.nameless && w.random(fmt.Sprint("loss ", w.now())).IntN(2) == 0 {
			w.straggle(m)
		} else {
			w.lapse()
		}
	case do < 11 && w.db.lossy:
		w.ambush(m)
	case do < 13 && w.db.lossy:
		w.failOver()
	case do == 9:
		w.restore()
	case do < 13:
		w.hang()
	default:
		m.skew.Store(0)
	}
}

// failOver has one of the most recent servers of the database take over.
func (w *poolWorld) failOver() {
	back := min(len(w.kept), 1+w.rng.IntN(3))
	w.note("a server takes over that lacks the latest writes")
	w.db.skew.Store(around(2*time.Second, w.rng))
	w.db.takeOver(w.kept[len(w.kept)-back])
}

// ambush pauses a server after the answer to one of its calls. Other servers go on, and then a server
// of the database takes over that lacks what they wrote.
func (w *poolWorld) ambush(m *machine) {
	p := m.proc.Load()
	w.kept = append(w.kept, w.db.cells.Snapshot())
	p.mu.Lock()
	p.pauses = pauses{at: 1 + w.rng.IntN(8), after: true}
	p.mu.Unlock()
	time.Sleep(time.Duration(w.rng.Int64N(int64(poolTTL))))
	w.note("a server takes over that lacks the latest writes")
	w.db.takeOver(w.kept[len(w.kept)-1])
	p.resume()
}

// restore replaces the registry by a backup, as an operator does: the servers start again when all
// leases have ended.
func (w *poolWorld) restore() {
	for _, m := range w.machines {
		if p := m.proc.Load(); p != nil {
			p.kill()
		}
	}
	w.note("the registry is restored from a backup")
	w.db.takeOver(w.kept[w.rng.IntN(len(w.kept))])
	time.Sleep(poolTTL + worker.DefaultTolerance + time.Second)
	for _, m := range w.machines {
		w.launch(m)
	}
}

// hang has the disk of the database hang, and mostly has it crash then.
func (w *poolWorld) hang() {
	w.db.stall()
	time.Sleep(time.Duration(w.rng.Int64N(int64(poolTTL))))
	if w.rng.IntN(4) == 0 {
		w.db.goOn()
	} else {
		w.db.crash()
	}
}

// check looks at all that happened.
func (w *poolWorld) check() error {
	return errors.Join(append(w.broken, w.history.Unique())...)
}
