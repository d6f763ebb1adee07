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

// A lease is asked to grow when less than slack is left beyond what the clock allows,
// to stock beyond that, in milliseconds.
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
	b := &g.ticker
	b.asked = true
	if b.running {
		return
	}
	b.running, b.idle = true, 0
	b.seen = g.current.Load().cursor.Load()
	if b.timer == nil {
		b.timer = time.AfterFunc(finest, g.tick)
		return
	}
	b.timer.Reset(finest)
}

// stop stops the ticker; g.mu is held. A turn that is under way does nothing, or counts as
// one after the next start.
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
	b, l := &g.ticker, g.current.Load()
	if !b.running {
		return
	}
	if b.asked || g.queue.len() > 0 || l.cursor.Load() != b.seen {
		b.idle = 0
	}
	b.asked = false
	g.refresh(g.opts.Clock.Now().UnixMilli())
	b.seen = l.cursor.Load()
	if b.idle++; b.idle > lingering {
		l.gate.Store(0)
		g.stop()
		g.stalled = 0
		return
	}
	next := min(max(g.layout.Tick, finest), coarsest)
	if g.queue.len() > 0 {
		next = finest
	}
	b.timer.Reset(next)
}

// refresh brings the cursor up to now, has the lease grow, and serves the queue;
// g.mu is held.
func (g *Generator) refresh(now int64) {
	if !g.held {
		return
	}
	l := g.current.Load()
	l.pull(now, g.random())
	l.raise(now, g.ahead, g.queue.backlog)
	if until := l.layout.start(l.tickOf(l.over.clock)); until > l.lease.Limit().UnixMilli()-slack {
		l.lease.Need(time.UnixMilli(until + stock))
	}
	g.queue.serve(l, g.ticker.running)
	switch stalled := l.over.lease <= l.over.clock && l.cursor.Load() >= l.limit; {
	case !stalled:
		g.stalled = 0
	case g.stalled == 0:
		g.stalled = now
	}
}
