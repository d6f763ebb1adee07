package conns

import (
	"net"
	"sync"
)

// handOver gives conn away, with what was read of it and not taken. Until it is closed it
// counts as one of the connections.
func (s *Server) handOver(conn net.Conn, rest []byte) {
	s.addAway(1)
	s.opts.HandOver(&handed{Conn: conn, server: s, rest: append([]byte(nil), rest...)})
}

func (s *Server) addAway(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away += n
}

// A handed is a connection whose first reads return what was read before.
type handed struct {
	net.Conn
	server *Server
	rest   []byte
	closed sync.Once
}

func (c *handed) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}

func (c *handed) Close() error {
	c.closed.Do(func() { c.server.addAway(-1) })
	return c.Conn.Close()
}
