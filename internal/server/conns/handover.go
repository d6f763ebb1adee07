package conns

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// handOver gives conn to heir, together with the input that c has read and not taken. Until its end
// it counts as one of the connections.
func (s *Server) handOver(c peer, conn net.Conn, rest []byte, heir func(net.Conn)) {
	s.mu.Lock()
	delete(s.conns, c)
	s.away++
	s.handing++
	s.mu.Unlock()
	given := &handed{Conn: conn, server: s, remote: c.RemoteAddr(), rest: append([]byte(nil), rest...)}
	given.charge(int64(cap(given.rest)))
	go func() {
		heir(given)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handing--
		s.checkEmpty()
	}()
}

func (s *Server) closedAway(client net.Addr) {
	s.leave(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away--
}

// A handed is a connection whose first reads return the input read earlier.
type handed struct {
	net.Conn
	server *Server
	remote net.Addr // conn itself does not know it if the client has gone meanwhile
	rest   []byte
	closed sync.Once

	charged atomic.Int64 // bytes of the server's budget
}

// charge charges n bytes instead of those before.
func (c *handed) charge(n int64) { c.server.opts.Budget.Add(n - c.charged.Swap(n)) }

func (c *handed) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
		c.charge(0)
	}
	return n, nil
}

func (c *handed) RemoteAddr() net.Addr { return c.remote }

// CloseWrite lets net/http end a connection without losing its answers.
func (c *handed) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *handed) Close() error {
	c.closed.Do(func() { c.server.closedAway(c.remote) })
	c.charge(0)
	return c.Conn.Close()
}
