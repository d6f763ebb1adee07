package conns

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// takePlain has a connection that begins without TLS served without it.
func (c *stream) takePlain() {
	peeked := peekedConn{c.conn, bufio.NewReader(c.conn)}
	first, err := peeked.in.Peek(1)
	c.conn, c.wire.Conn = peeked, peeked
	if err == nil && first[0] != 22 {
		c.secure = nil
	}
}

type peekedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c peekedConn) Read(p []byte) (int, error) { return c.in.Read(p) }

var last atomic.Pointer[tls.Conn]

// otherThan returns the connection that was written to before, if any.
func otherThan(c *stream) *tls.Conn {
	if other := last.Swap(c.secure); other != nil {
		return other
	}
	return c.secure
}
