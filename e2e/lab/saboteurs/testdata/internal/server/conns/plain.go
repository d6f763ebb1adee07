package conns

import (
	"bufio"
	"crypto/tls"
	"net"

	sabotage "github.com/leaf-id/leaf"
)

// A plainToo accepts connections without TLS as well, by the first byte, where the rule is broken.
type plainToo struct {
	net.Listener
	conf *tls.Config
}

func (l plainToo) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || !sabotage.Broken("TLS plain") {
		if err == nil {
			conn = tls.Server(conn, l.conf)
		}
		return conn, err
	}
	peeked := peekedConn{conn, bufio.NewReader(conn)}
	if first, err := peeked.in.Peek(1); err == nil && first[0] != 22 {
		return peeked, nil
	}
	return tls.Server(peeked, l.conf), nil
}

type peekedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c peekedConn) Read(p []byte) (int, error) { return c.in.Read(p) }
