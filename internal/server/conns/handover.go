package conns

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// depart begins a hand-over: the server stops and cuts the connection no more. It counts until its
// end.
func (s *Server) depart(c peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.away++
	s.handing++
}

// handOver gives conn to heir, together with the input that c has read and not taken.
func (s *Server) handOver(c peer, conn net.Conn, rest []byte, heir func(net.Conn)) {
	s.give(s.keep(s.counted(c, conn), rest), heir)
}

// handOverSecure is handOver for an encrypted connection. It gives the [tls.Conn] itself if nothing
// was read ahead: HTTP/2 of net/http needs one.
func (c *stream) handOverSecure(rest []byte) {
	c.wire.Conn, c.wire.stream = c.server.counted(c, c.conn), nil
	var given net.Conn = c.secure
	if len(rest) > 0 {
		given = &secured{c.server.keep(c.secure, rest), c.secure}
	}
	c.server.give(given, c.heir)
}

func (s *Server) give(conn net.Conn, heir func(net.Conn)) {
	go func() {
		heir(conn)
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

// A counted is a connection that another server serves, and that counts until its close.
type counted struct {
	net.Conn
	server *Server
	remote net.Addr // conn itself does not know it if the client has gone meanwhile
	closed sync.Once
}

func (s *Server) counted(c peer, conn net.Conn) *counted {
	return &counted{Conn: conn, server: s, remote: c.RemoteAddr()}
}

func (c *counted) RemoteAddr() net.Addr { return c.remote }

// CloseWrite lets net/http end a connection without losing its answers.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

func (c *counted) Close() error {
	c.closed.Do(func() { c.server.closedAway(c.remote) })
	return c.Conn.Close()
}

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// A handed is a connection whose first reads return the input read earlier.
type handed struct {
	net.Conn
	budget  *Budget
	rest    []byte
	charged atomic.Int64 // bytes of the budget
}

// keep returns conn with a copy of the input read earlier.
func (s *Server) keep(conn net.Conn, rest []byte) *handed {
	c := &handed{Conn: conn, budget: s.opts.Budget, rest: append([]byte(nil), rest...)}
	c.charge(int64(cap(c.rest)))
	return c
}

// charge charges n bytes instead of those before.
func (c *handed) charge(n int64) { c.budget.Add(n - c.charged.Swap(n)) }

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

// CloseWrite lets net/http end a connection without losing its answers.
func (c *handed) CloseWrite() error { return closeWrite(c.Conn) }

func (c *handed) Close() error {
	c.charge(0)
	return c.Conn.Close()
}

// A secured is an encrypted handed. net/http asks it for the client's certificate.
type secured struct {
	*handed
	conn *tls.Conn
}

// ConnectionState returns the result of the handshake.
func (c *secured) ConnectionState() tls.ConnectionState { return c.conn.ConnectionState() }
