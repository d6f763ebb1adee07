package conns

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const (
	smallRest = 1 << 10  // input that the loop reads again, with more behind it, into its buffer
	turn      = 16 << 10 // bytes of replies after which other connections have their turn
	smallRead = 4 << 10  // bytes of one read, except in turns from the queue
)

// A loopConn is a connection that a loop serves. All but begin, stop and cut is called from
// the loop's goroutine.
type loopConn struct {
	Conn
	loop   *loop
	fd     int
	serial int32  // tells it from others with the same descriptor
	events uint32 // that the loop waits for; 0: the system does not know the connection

	in        []byte // input that the session has not taken
	inSize    int    // memory of in
	unread    unread
	charged   int // bytes of the server's budget
	freed     int // how much of unread was written since its time began
	discarded int // discarded bytes after the end

	begun, eof, stopping, parked, queued, finishing, lingering, closed, late bool

	held     bool // requests wait until the client has read
	busy     bool // the next turn comes from the queue: the last one was full, or it is the first
	readable bool // the next turn begins with reading

	reading timer // of the request, of being idle, or of the end
	writing timer
}

// begin gives the connection to its loop.
func (c *loopConn) begin() { c.loop.post(func() { c.protect(c.register) }) }

// stop ends the connection after the answers to its read requests.
func (c *loopConn) stop() { c.loop.post(func() { c.protect(c.drain) }) }

// cut ends the connection at once.
func (c *loopConn) cut() { c.loop.post(c.close) }

// release gives the descriptor back where the connection never began.
func (c *loopConn) release() { _ = unix.Close(c.fd) }

// protect calls f, and ends the connection if that fails.
func (c *loopConn) protect(f func()) {
	defer func() {
		if reason := recover(); reason != nil {
			c.server.logFault(reason)
			c.close()
		}
	}()
	f()
}

func (c *loopConn) register() {
	if c.closed { // it was cut
		return
	}
	l := c.loop
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.serial++
	c.serial = l.serial
	l.conns[c.fd] = c
	c.session = c.server.handle(&c.Conn)
	c.decideNext(false, false)
}

func (c *loopConn) drain() {
	c.stopping = true
	if c.session != nil {
		c.goOn()
	}
}

// ready handles an event.
func (c *loopConn) ready(events uint32) {
	if c.unread.size > 0 && events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 && !c.writeMore() {
		return
	}
	switch {
	case c.lingering:
		c.discard()
	case events&^unix.EPOLLOUT != 0 && c.wantsInput():
		if !c.busy {
			c.read()
			return
		}
		c.pauseRead()
		c.readable = true
		c.queue()
		c.listen()
	default: // others may have left so much unread that this one's share is smaller now
		c.listen()
	}
}

// wantsInput reports whether the connection has room, and use, for more input.
func (c *loopConn) wantsInput() bool {
	return !(c.closed || c.eof || c.ending || c.stopping || c.parked || c.queued || c.finishing || c.leaves() || c.held || c.blocked())
}

// blocked reports whether the client has left as much unread as it may.
func (c *loopConn) blocked() bool {
	return c.unread.size > 0 && c.unread.size > c.server.maxUnread(c.session)
}

// read reads input and serves it.
func (c *loopConn) read() {
	limit := c.readLimit()
	in, n, err := c.receive(limit)
	switch {
	case err == unix.EAGAIN:
	case err != nil:
		c.close()
	case n == 0:
		c.eof = true
		c.decideNext(false, false)
	default:
		c.serve(in, true)
		c.busy = c.busy || n >= limit // more may be there
	}
}

// readLimit returns how much is read at once. It is little before the first turn in the queue, so
// that a loop soon knows which of many new connections have large pipelines.
func (c *loopConn) readLimit() int {
	if c.busy && !c.server.opts.Budget.Spent() {
		return loopBuffer
	}
	return smallRead
}

// receive returns the unread input with more behind it. It copies a little input to a place with
// room for a large read.
func (c *loopConn) receive(limit int) (in []byte, n int, err error) {
	if len(c.in) > smallRest {
		c.in = grow(c.in)
		n, err = receive(c.fd, c.in[len(c.in):min(len(c.in)+limit, cap(c.in))])
		c.in = c.in[:len(c.in)+n]
		return c.in, n, err
	}
	buf := c.loop.in
	rest := copy(buf, c.in)
	n, err = receive(c.fd, buf[rest:min(rest+limit, len(buf))])
	if n > 0 {
		c.in = c.in[:0]
	}
	return buf[:rest+n], n, err
}

// grow returns p with room behind it.
func grow(p []byte) []byte {
	if cap(p)-len(p) >= smallRest {
		return p
	}
	return append(make([]byte, 0, 2*len(p)+smallRest), p...)
}

// queue puts the connection at the end of the loop's queue.
func (c *loopConn) queue() {
	c.queued = true
	c.loop.again = append(c.loop.again, c)
}

// goOn is the turn of a connection from the queue.
func (c *loopConn) goOn() {
	readable := c.readable
	c.queued, c.readable = false, false
	switch {
	case c.closed || c.parked || c.finishing:
	case readable && !c.stopping:
		c.read()
	default:
		c.serve(c.in, false)
	}
}

// serve executes the requests in in, which is c.in or a part of the loop's buffer. last: the loop
// does nothing else with the connection until it sends the postponed replies.
func (c *loopConn) serve(in []byte, last bool) {
	taken, made, more := 0, 0, false
	for (taken < len(in) || c.more) && !c.ending && c.later == nil && !c.leaves() {
		if more = made > turn || c.blocked(); more {
			break
		}
		c.more = false
		n, from := c.execute(in[taken:])
		taken += n
		made += len(c.loop.out) - from
		if last && taken == len(in) && !c.more && c.postpone(from) {
			break
		}
		if !c.sendFrom(from) {
			return
		}
		if n == 0 && !c.more {
			break
		}
	}
	c.busy = made > turn
	c.rest(in[taken:])
	c.decideNext(taken > 0, more)
}

// execute has the session append replies to the loop's, and returns how much of in it took and
// where they begin.
func (c *loopConn) execute(in []byte) (taken, from int) {
	l := c.loop
	from = len(l.out)
	taken, l.out = c.session.Serve(in, l.out)
	l.work += (taken + len(l.out) - from) / workSize
	return taken, from
}

// rest keeps the unread input.
func (c *loopConn) rest(rest []byte) {
	switch {
	case len(rest) == 0:
		c.in, c.inSize = nil, 0
	case len(c.in) > 0 && 2*len(rest) < c.inSize: // rest is its end
		c.in, c.inSize = append(make([]byte, 0, len(rest)), rest...), len(rest)
	case len(c.in) > 0:
		c.in = rest
	default:
		c.in = append(c.in, rest...)
	}
	c.inSize = max(c.inSize, cap(c.in))
	c.charge()
}

// decideNext decides the next event for the connection. more: some requests are still unserved.
func (c *loopConn) decideNext(progress, more bool) {
	if c.eof && len(c.in) > 0 && !more && !c.ending && !c.finishing && c.later == nil {
		c.session.HalfClosed(c.in)
	}
	c.held = false
	switch {
	case c.leaves() && c.unread.size == 0:
		c.leave()
		return
	case c.leaves(): // when the client has read what it was sent
		c.reading.clear()
	case c.later != nil:
		c.park()
	case more && c.blocked(): // goes on when the client has read
		c.pauseRead()
		c.held = true
	case more:
		c.pauseRead()
		c.queue()
	case c.ending || c.eof || c.stopping || c.late:
		c.finish()
	default:
		c.limitRead(progress)
	}
	c.listen()
}

// limitRead starts the client's time for its next step.
func (c *loopConn) limitRead(progress bool) {
	l := c.loop
	switch free := c.session.MayIdle(); {
	case free && len(c.in) == 0:
		c.begun = false
		if l.idle.length > 0 {
			l.idle.set(&c.reading, l.clock())
		} else {
			c.reading.clear()
		}
	case free && progress, !c.begun:
		c.begun = true
		l.request.set(&c.reading, l.clock())
	}
}

// pauseRead stops the client's time while it waits for the server.
func (c *loopConn) pauseRead() {
	if c.session.MayIdle() {
		c.begun = false
		c.reading.clear()
	}
}

// expired ends a connection whose client was too slow.
func (c *loopConn) expired() {
	c.late = true
	if !c.parked && !c.queued {
		c.protect(func() { c.decideNext(false, false) })
	}
}

// park has what may wait done by a goroutine. The system reports nothing of the connection
// meanwhile, not even that its client has gone.
func (c *loopConn) park() {
	later := c.later
	c.later, c.parked = nil, true
	c.pauseRead()
	go func() {
		var out []byte
		fault := true
		defer func() {
			if fault {
				c.server.logFault(recover())
			}
			c.loop.post(func() { c.protect(func() { c.resume(out, fault) }) })
		}()
		out = later(c.server.ctx, nil)
		fault = false
	}()
}

func (c *loopConn) resume(out []byte, fault bool) {
	c.parked = false
	if c.closed {
		c.end()
		return
	}
	if fault {
		c.close()
		return
	}
	if c.send(out) {
		c.serve(c.in, false)
	}
}

// finish closes the connection so that the client gets all written replies: after a close with
// unread input the system would discard replies on their way.
func (c *loopConn) finish() {
	c.finishing = true
	c.reading.clear()
	switch {
	case c.unread.size > 0 || c.lingering:
	case c.eof || unix.Shutdown(c.fd, unix.SHUT_WR) != nil:
		c.close()
	default:
		c.lingering = true
		c.loop.linger.set(&c.reading, c.loop.clock())
	}
}

// discard reads until the client closes the connection too.
func (c *loopConn) discard() {
	n, err := receive(c.fd, c.loop.in)
	if c.discarded += n; err == unix.EAGAIN || n > 0 && c.discarded < lingerSize {
		return
	}
	c.close()
}

// listen tells the system which events the loop waits for.
func (c *loopConn) listen() {
	if c.closed {
		return
	}
	var events uint32
	if c.lingering || c.wantsInput() {
		events |= unix.EPOLLIN
	}
	if c.unread.size > 0 {
		events |= unix.EPOLLOUT
	}
	if events == c.events {
		return
	}
	op := unix.EPOLL_CTL_MOD
	switch {
	case c.events == 0:
		op = unix.EPOLL_CTL_ADD
	case events == 0:
		op = unix.EPOLL_CTL_DEL
	}
	if err := unix.EpollCtl(c.loop.epoll, op, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd), Pad: c.serial}); err != nil {
		c.server.opts.Logger.Error("a connection was closed: the system does not watch it", "err", err)
		c.close()
		return
	}
	c.events = events
}

// leave hands the connection over.
func (c *loopConn) leave() {
	if c.events != 0 { // else the system continues to watch it under its next descriptor
		_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_DEL, c.fd, nil)
	}
	file := os.NewFile(uintptr(c.fd), "")
	conn, err := net.FileConn(file)
	_ = file.Close() // conn has a descriptor of its own
	if err == nil {
		c.server.depart(c)
		c.server.handOver(c, conn, c.in, c.heir)
	} else {
		c.server.opts.Logger.Warn("a connection was closed: it could not be handed over", "err", err)
	}
	c.forget()
	c.end()
}

// close ends the connection.
func (c *loopConn) close() {
	if c.closed {
		return
	}
	c.forget()
	_ = unix.Close(c.fd)
	if !c.parked {
		c.end()
	}
}

// forget takes the connection from the loop.
func (c *loopConn) forget() {
	c.closed = true
	c.reading.clear()
	c.writing.clear()
	c.in, c.inSize, c.unread = nil, 0, unread{}
	c.charge()
	if c.session != nil {
		c.loop.conns[c.fd] = nil
	}
}

// end says that nothing of the connection is left.
func (c *loopConn) end() {
	if c.session != nil {
		c.session.Closed()
	}
	c.server.remove(c)
}
