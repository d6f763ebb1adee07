package conns

import (
	"cmp"
	"context"
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

// A Conn is a connection that is served. Its handler alone reads and writes.
type Conn struct {
	net.Conn
	server *Server
	gone   bool // the client has closed it, or it failed
	begun  bool // a request has begun, and its time runs

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

func newConn(s *Server, conn net.Conn) *Conn {
	c := &Conn{Conn: conn, server: s}
	c.backlog.init(c)
	if tcp, ok := conn.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn() // fails for no connection that is open
	}
	c.attempt = func(fd uintptr) bool {
		c.outN, c.outErr = writeOnce(fd, c.out)
		return true
	}
	return c
}

// Idle says that no byte of the next request is there yet. It is called before each Read
// for which that holds.
func (c *Conn) Idle() {
	if limit := c.server.opts.IdleTimeout; c.begun || limit > 0 {
		c.begun = false
		c.limitRead(limit)
	}
}

// Begun says that a request has begun which is not there as a whole: its time runs from
// now on. It is called once for each such request.
func (c *Conn) Begun() {
	c.begun = true
	c.limitRead(c.server.opts.RequestTimeout)
}

// limitRead bounds the reads from now on; 0: no limit.
func (c *Conn) limitRead(limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	var end time.Time
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	_ = c.SetReadDeadline(end) // fails where Read will
}

// stop makes the reads fail, the one in progress included.
func (c *Conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	_ = c.SetReadDeadline(time.Unix(1, 0)) // fails where Read will
}

// Read reads what the client sends, within the time that Idle or Begun has started.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if timeout, ok := err.(net.Error); err != nil && !(ok && timeout.Timeout()) {
		c.gone = true
	}
	return n, err
}

// Write sends p. It waits for the client only where that has left much unread.
func (c *Conn) Write(p []byte) (int, error) {
	err := c.write(p)
	if err != nil {
		c.gone = true
		return 0, err
	}
	return len(p), nil
}

func (c *Conn) write(p []byte) error {
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

// handshake does what comes before the protocol, where there is something.
func (c *Conn) handshake(ctx context.Context) error {
	conn, ok := c.Conn.(interface{ HandshakeContext(context.Context) error })
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.opts.RequestTimeout)
	defer cancel()
	return conn.HandshakeContext(ctx)
}

// finish closes the connection so that the client gets all that was written.
func (c *Conn) finish() {
	defer c.Close()
	if c.backlog.wait() != nil {
		return
	}
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if c.gone || !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))              // fails where the copying does
	_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, lingerSize)) // until the client closes it too
}
