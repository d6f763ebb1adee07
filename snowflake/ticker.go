package snowflake

import "time"

// finest is the shortest time between two turns of the ticker, coarsest the longest: a
// tick that begins is noticed at most that much later. After lingering turns without
// traffic the ticker stops.
const (
	finest    = time.Millisecond
	coarsest  = 10 * time.Millisecond
	lingering = 32
)

// When less than slack is left beyond the bound of the clock, the generator asks the lease to grow
// to stock beyond it; in milliseconds.
const (
	slack = 1000
	stock = 2000
)

// A ticker is the coarse clock of a generator: a timer that refreshes the cursor regularly,
// so that callers need not read the clock.
type ticker struct {
	timer   *time.Timer // nil before the first use
	running bool
	asked   bool   // a call came through the slow path since the last turn
	seen    uint64 // the cursor at the last turn
	idle    int    // turns without traffic
}

// start starts the ticker; g.mu is held.
func (g *Generator) start() {
	t := &g.ticker
	t.asked = true
	if t.running {
		return
	}
	t.running, t.idle = true, 0
	t.seen = g.current.Load().cursor.Load()
	if t.timer == nil {
		t.timer = time.AfterFunc(finest, g.tick)
		return
	}
	t.timer.Reset(finest)
}

// stop stops the ticker; the caller holds g.mu. A turn that already runs does nothing, or counts as
// a turn after the next start.
func (g *Generator) stop() {
	if g.ticker.running {
		g.ticker.running = false
		g.ticker.timer.Stop()
	}
}

// tick is one turn of the ticker.
func (g *Generator) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, l := &g.ticker, g.current.Load()
	if !t.running {
		return
	}
	if t.asked || g.queue.len() > 0 || l.cursor.Load() != t.seen {
		t.idle = 0
	}
	t.asked = false
	g.refresh(g.opts.Clock.Now().UnixMilli())
	t.seen = l.cursor.Load()
	if t.idle++; t.idle > lingering {
		l.gate.Store(0)
		g.stop()
		g.stalled = 0
		return
	}
	next := min(max(g.layout.Tick, finest), coarsest)
	if g.queue.len() > 0 {
		next = finest
	}
	t.timer.Reset(next)
}

// refresh brings the cursor up to now, has the lease grow, and serves the queue; g.mu is held.
func (g *Generator) refresh(now int64) {
	if !g.held {
		return
	}
	l := g.current.Load()
	seq := uint64(0) // callers who wait want all of the tick
	if g.queue.len() == 0 {
		seq = g.random()
	}
	l.pull(now, seq)
	l.raise(now, g.ahead, g.queue.backlog)
	if until := l.layout.start(l.tickOf(l.allowed.clock)); until > l.lease.Limit().UnixMilli()-slack {
		l.lease.Need(time.UnixMilli(until + stock))
	}
	g.queue.serve(l, g.ticker.running)
	switch stalled := l.allowed.lease <= l.allowed.clock && l.cursor.Load() >= l.limit; {
	case !stalled:
		g.stalled = 0
	case g.stalled == 0:
		g.stalled = now
	}
}
