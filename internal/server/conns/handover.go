package conns

import (
	"net"
	"sync"
)

// handOver gives conn away, which c served, with what was read of it and not taken. Until it
// is closed it counts as one of the connections.
func (s *Server) handOver(c peer, conn net.Conn, rest []byte) {
	s.mu.Lock()
	delete(s.conns, c)
	s.away++
	s.handing++
	s.mu.Unlock()
	given := &handed{Conn: conn, server: s, rest: append([]byte(nil), rest...)}
	go func() {
		s.opts.HandOver(given)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handing--
		s.checkEmpty()
	}()
}

func (s *Server) closedAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away--
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
	c.closed.Do(c.server.closedAway)
	return c.Conn.Close()
}
