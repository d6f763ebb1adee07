package conns

import (
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	loopBuffer = 64 << 10 // bytes of one read, and kept for replies
	loopEvents = 256      // connections served between two polls
	fewEvents  = 4        // after fewer events the next poll usually finds no more
	yieldAfter = 256      // events, or so much work, after which other goroutines have their turn
	workSize   = 4 << 10  // bytes of requests or replies that count as one event

	round = time.Millisecond // the queue's time between two looks at the system
)

// HasLoops: this system has event loops.
const HasLoops = true

// A loop serves connections in one goroutine, with epoll. All but post is called from that
// goroutine.
type loop struct {
	server *Server
	epoll  int
	wakeFD int // an eventfd that ends a wait
	ended  bool
	serial int32 // of the last connection

	mu     sync.Mutex
	tasks  []func()
	posted atomic.Bool // tasks wait
	asleep atomic.Bool // a write to wakeFD must wake it

	conns []*loopConn // by descriptor
	again []*loopConn // the queue: those with more to do than fits in one turn
	in    []byte
	out   []byte    // replies; the postponed ones come first
	now   time.Time // zero: not read since events came
	came  int       // events at the last look
	work  int       // since other goroutines had their turn

	postponed []replies

	idle, request, write, linger timers
}

// replies are a part of a loop's out that a connection sends when all events are served. Clients
// are woken up less often by then, and so send more at once.
type replies struct {
	conn     *loopConn
	from, to int
}

// startLoops starts the loops with the first listener; the caller holds s.mu. It goes without
// features that the system denies.
func (s *Server) startLoops() {
	for len(s.loops) < s.opts.Loops {
		l, err := newLoop(s)
		if err != nil {
			s.opts.Logger.Warn("connections are served without an event loop", "err", err)
			s.opts.Loops = len(s.loops)
			return
		}
		s.loops = append(s.loops, l)
		s.running.Go(l.run)
	}
}

func newLoop(s *Server) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &loop{server: s, epoll: epoll, wakeFD: -1, in: make([]byte, loopBuffer), out: make([]byte, 0, loopBuffer)}
	if l.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, l.wakeFD, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.wakeFD)})
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.idle.init(s.opts.IdleTimeout, (*loopConn).expired)
	l.request.init(s.opts.RequestTimeout, (*loopConn).expired)
	l.write.init(s.opts.WriteTimeout, (*loopConn).close)
	l.linger.init(lingerTime, (*loopConn).close)
	return l, nil
}

func (l *loop) close() {
	for _, fd := range []int{l.epoll, l.wakeFD} {
		_ = unix.Close(fd) // -1: it was not opened
	}
}

func (l *loop) run() {
	defer l.close()
	events := make([]unix.EpollEvent, loopEvents)
	for !l.ended {
		l.came = l.wait(events)
		l.now = time.Time{}
		l.serveAll(events[:l.came])
		l.readMail()
		l.serveAgain()
		l.expire()
		if l.work++; l.work > yieldAfter {
			l.work = 0
			runtime.Gosched() // nothing above tells the scheduler that time passes
		}
	}
}

// serveAll serves the events.
func (l *loop) serveAll(events []unix.EpollEvent) {
	for i := range events {
		l.serve(&events[i])
		if len(l.out) > loopBuffer/2 {
			l.flush()
		}
	}
	l.flush()
	l.work += len(events)
}

// flush sends the postponed replies.
func (l *loop) flush() {
	for _, r := range l.postponed {
		if !r.conn.closed && r.conn.send(l.out[r.from:r.to]) {
			r.conn.listen() // the system may not have taken all
		}
	}
	clear(l.postponed)
	l.postponed = l.postponed[:0]
	if l.out = l.out[:0]; cap(l.out) > 4*loopBuffer {
		l.out = make([]byte, 0, loopBuffer)
	}
}

// wait returns the number of events. Without other work it waits for the first one.
func (l *loop) wait(events []unix.EpollEvent) int {
	if l.came >= fewEvents || len(l.again) > 0 {
		if n := pollNow(l.epoll, events); n > 0 || len(l.again) > 0 {
			return n
		}
	}
	defer l.asleep.Store(false)
	if l.asleep.Store(true); l.posted.Load() {
		return 0
	}
	n, err := unix.EpollWait(l.epoll, events, l.timeout())
	if err != nil { // a signal
		return 0
	}
	return n
}

// timeout returns how many milliseconds the next timer lets the loop wait; -1: as long as it likes.
func (l *loop) timeout() int {
	var next time.Time
	for _, list := range l.timers() {
		if t := list.first(); t != nil && (next.IsZero() || t.at.Before(next)) {
			next = t.at
		}
	}
	if next.IsZero() {
		return -1
	}
	return int(max(time.Until(next)/time.Millisecond+1, 0))
}

func (l *loop) timers() [4]*timers {
	return [...]*timers{&l.idle, &l.request, &l.write, &l.linger}
}

// clock returns the time at which the events came, nearly.
func (l *loop) clock() time.Time {
	if l.now.IsZero() {
		l.now = time.Now()
	}
	return l.now
}

// expire ends the connections whose time has run out.
func (l *loop) expire() {
	for _, list := range l.timers() {
		for t := list.first(); t != nil && !t.at.After(l.clock()); t = list.first() {
			t.clear()
			list.fire(t.conn)
		}
	}
}

// serve serves an event's connection.
func (l *loop) serve(e *unix.EpollEvent) {
	if e.Fd == int32(l.wakeFD) {
		var count [8]byte
		_, _ = unix.Read(l.wakeFD, count[:]) // it only has to be silent again
		return
	}
	if c := l.find(e); c != nil {
		c.protect(func() { c.ready(e.Events) })
	}
}

// find returns the connection of an event; nil where it has ended, and another may have its
// descriptor by now.
func (l *loop) find(e *unix.EpollEvent) *loopConn {
	if int(e.Fd) >= len(l.conns) {
		return nil
	}
	if c := l.conns[e.Fd]; c != nil && c.serial == e.Pad {
		return c
	}
	return nil
}

// serveAgain serves the queue for the time of a round, so that a new request does not wait for all
// the pipelines of other clients.
func (l *loop) serveAgain() {
	if len(l.again) == 0 {
		return
	}
	for start := time.Now(); len(l.again) > 0 && time.Since(start) < round; {
		c := l.again[0]
		l.again[0] = nil
		l.again = l.again[1:]
		c.protect(c.goOn)
		if len(l.out) > loopBuffer/2 {
			l.flush()
		}
	}
	l.flush()
}

// post has f called by the loop.
func (l *loop) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock() // f may end the loop, and wakeFD be another file then
	l.tasks = append(l.tasks, f)
	l.posted.Store(true)
	if l.asleep.Swap(false) {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(l.wakeFD, one[:]) // a full counter rings too
	}
}

func (l *loop) readMail() {
	if !l.posted.Load() {
		return
	}
	l.posted.Store(false)
	l.mu.Lock()
	tasks := l.tasks
	l.tasks = nil
	l.mu.Unlock()
	for _, f := range tasks {
		f()
	}
}

func (l *loop) quit() { l.ended = true }

// newLoopConn returns what serves conn in a loop, nil where no loop can.
func (s *Server) newLoopConn(conn net.Conn) *loopConn {
	tcp, ok := conn.(*net.TCPConn)
	l := s.pickLoop()
	if !ok || l == nil {
		return nil
	}
	fd, err := duplicate(tcp)
	if err != nil {
		return nil
	}
	c := &loopConn{Conn: Conn{server: s, local: conn.LocalAddr(), remote: conn.RemoteAddr()}, loop: l, fd: fd}
	c.reading.conn, c.writing.conn = c, c
	return c
}

// pickLoop returns the loops in turn.
func (s *Server) pickLoop() *loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.loops) == 0 {
		return nil
	}
	s.nextLoop++
	return s.loops[s.nextLoop%len(s.loops)]
}

// duplicate returns a descriptor that Go's own poller does not know: it would wake up
// whenever the loop does.
func duplicate(conn *net.TCPConn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	failed := raw.Control(func(s uintptr) { fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) })
	if failed != nil {
		return -1, failed
	}
	return fd, err
}
