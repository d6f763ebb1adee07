package conns

import (
	"cmp"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// How long, and for how much, a connection is read after it was closed for writing.
const (
	lingerTime = time.Second
	lingerSize = 1 << 20
)

// Sizes of buffers, in bytes. Thousands of connections are idle: they keep little.
const (
	smallInput = 1 << 10
	bulkInput  = 16 << 10 // for pipelines; a single request may need more
	keepOutput = 20 << 10
)

// A stream is a connection that a goroutine of its own serves. It does for any net.Conn.
type stream struct {
	Conn
	conn   net.Conn
	secure *tls.Conn // over wire; nil: nothing is encrypted
	wire   *wire     // over conn
	gone   bool      // the client has closed it, or it failed

	in         []byte
	start, end int // what of in is not taken yet
	reply      []byte

	raw     syscall.RawConn // nil: writes cannot be tried without a wait
	attempt func(fd uintptr) bool
	out     []byte // what attempt writes
	outN    int    // how much of it was written
	outErr  error
	late    bool // the backlog may not be empty
	backlog backlog

	mu       sync.Mutex
	stopping bool // reads fail from now on
}

func newStream(s *Server, conn net.Conn) *stream {
	c := &stream{Conn: Conn{server: s, local: conn.LocalAddr(), remote: conn.RemoteAddr()}, conn: conn}
	c.backlog.init(c)
	if tcp, ok := conn.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn() // cannot fail for an open connection
	}
	c.attempt = func(fd uintptr) bool {
		c.outN, c.outErr = writeOnce(fd, c.out)
		return true
	}
	if s.opts.TLS != nil {
		c.wire = &wire{Conn: conn, stream: c}
		c.secure = tls.Server(c.wire, s.opts.TLS)
	}
	return c
}

// serve serves the connection to its end.
func (c *stream) serve() {
	defer c.server.remove(c)
	defer c.finish()
	defer c.server.recoverFault()
	if c.secure != nil && !c.handshake() {
		return
	}
	c.session = c.server.handle(&c.Conn)
	defer c.session.Closed()
	if !c.leaves() {
		c.run()
	}
}

// run serves the requests. An idle limit set a moment ago is enough for the next request,
// too: each costs a call of the runtime's timers.
func (c *stream) run() {
	c.in = make([]byte, smallInput)
	begun := false
	var limited time.Time // when the limit of being idle was set
	for {
		progress, ok := c.execute()
		if !ok {
			return
		}
		c.makeRoom()
		switch free := c.session.MayIdle(); {
		case free && c.end == 0:
			if limit := c.server.opts.IdleTimeout; begun || limit > 0 && time.Since(limited) > limit/64 {
				c.limitRead(limit)
				limited = time.Now()
			}
			begun = false
		case free && progress, !begun:
			c.limitRead(c.server.opts.RequestTimeout)
			begun = true
		}
		if !c.read() {
			return
		}
	}
}

// execute executes the complete requests, and reports whether it found one; ok is false at the end
// of the connection.
func (c *stream) execute() (progress, ok bool) {
	for c.start < c.end || c.more {
		c.more = false
		n, out := c.session.Serve(c.in[c.start:c.end], c.reply[:0])
		c.start += n
		progress = progress || n > 0
		ok = c.send(out)
		later := c.later
		if later != nil && ok {
			c.later = nil
			ok = c.send(later(c.server.ctx, c.reply[:0]))
		}
		if !ok || c.ending || c.leaves() {
			return progress, false
		}
		if n == 0 && later == nil && !c.more {
			break
		}
	}
	return progress, true
}

// makeRoom moves the rest of the input to the front, with room for more behind it.
func (c *stream) makeRoom() {
	full := c.end == len(c.in)
	c.end = copy(c.in, c.in[c.start:c.end])
	c.start = 0
	size := len(c.in)
	switch {
	case c.end == size, full && size < bulkInput:
		size = min(2*size, MaxInput)
	case c.end == 0 && size > bulkInput:
		size = bulkInput
	}
	if size != len(c.in) {
		c.in = append(make([]byte, 0, size), c.in[:c.end]...)[:size]
	}
}

// read reads the client's input; false: the client sends no more.
func (c *stream) read() bool {
	n, err := c.receive(c.in[c.end:])
	c.end += n
	if timeout, ok := err.(net.Error); err != nil && !(ok && timeout.Timeout()) {
		c.gone = true
	}
	if err == io.EOF && n == 0 && c.end > 0 {
		c.session.HalfClosed(c.in[:c.end])
	}
	return err == nil || n > 0
}

func (c *stream) receive(p []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Read(p)
	}
	return c.conn.Read(p)
}

// limitRead bounds the reads from now on; 0: no limit.
func (c *stream) limitRead(limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	var end time.Time
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	_ = c.conn.SetReadDeadline(end) // fails where Read will
}

// stop makes the reads fail, the one in progress included.
func (c *stream) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // fails where Read will
}

func (c *stream) cut() { _ = c.conn.Close() } // its goroutine ends with it

// send sends replies; false: the client has gone. It waits for the client only where that
// has left much unread.
func (c *stream) send(p []byte) bool {
	if cap(p) <= keepOutput {
		c.reply = p
	} else {
		c.reply = nil
	}
	switch {
	case len(p) == 0:
	case c.secure != nil:
		if _, err := c.secure.Write(p); err != nil {
			c.gone = true
		}
	case c.write(p) != nil:
		c.gone = true
	}
	return !c.gone
}

func (c *stream) write(p []byte) error {
	if c.late && c.backlog.empty() {
		c.late = false
	}
	if !c.late && c.raw != nil {
		c.out = p
		err := c.raw.Write(c.attempt)
		c.out = nil
		if err = cmp.Or(err, c.outErr); err != nil {
			return err
		}
		if p = p[c.outN:]; len(p) == 0 {
			return nil
		}
	}
	c.late = true
	return c.backlog.add(p)
}

// finish closes the connection so that the client gets all written replies, or hands it over.
func (c *stream) finish() {
	if c.leaves() {
		c.leave()
		return
	}
	defer c.conn.Close()
	if c.backlog.wait() != nil || c.secure != nil && c.closeNotify() != nil {
		return
	}
	half, ok := c.conn.(interface{ CloseWrite() error })
	if c.gone || !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(lingerTime))         // fails where the copying does
	_, _ = io.Copy(io.Discard, io.LimitReader(c.conn, lingerSize)) // until the client closes it too
}

// leave hands the connection over.
func (c *stream) leave() {
	_ = c.backlog.wait()                    // where it fails, so will the reads
	c.server.depart(c)                      // no stop sets a limit after this
	_ = c.conn.SetReadDeadline(time.Time{}) // fails where Read will
	if rest := c.in[c.start:c.end]; c.secure != nil {
		c.handOverSecure(rest)
	} else {
		c.server.handOver(c, c.conn, rest, c.heir)
	}
}
