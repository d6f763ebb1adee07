package conns

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// A wire is an encrypted connection as package tls sees it: what TLS sends takes the way of plain
// replies, so that a client that does not read holds up nothing. After a hand-over it is the
// connection itself.
type wire struct {
	net.Conn
	stream *stream // nil after a hand-over
}

// Write implements [net.Conn]. It keeps the part that the system does not take.
func (w *wire) Write(p []byte) (int, error) {
	if w.stream == nil {
		return w.Conn.Write(p)
	}
	if err := w.stream.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline implements [net.Conn]. The backlog has limits of its own, which the end of a TLS
// connection must not replace.
func (w *wire) SetWriteDeadline(t time.Time) error {
	if w.stream == nil {
		return w.Conn.SetWriteDeadline(t)
	}
	return nil
}

// handshake executes the handshake of TLS; false: it failed.
func (c *stream) handshake() bool {
	c.limitRead(c.server.opts.RequestTimeout)
	if err := c.secure.Handshake(); err != nil {
		c.refuse(err)
		return false
	}
	c.limitRead(0)
	c.tls = new(c.secure.ConnectionState())
	return true
}

// refuse logs why a handshake failed, and answers a client that began without TLS. Load balancers
// often connect and say nothing.
func (c *stream) refuse(why error) {
	if errors.Is(why, io.EOF) || c.server.isStopping() {
		return
	}
	if begin, ok := errors.AsType[tls.RecordHeaderError](why); ok && begin.Conn != nil {
		_ = c.write(c.server.opts.NeedsTLS) // the client may have gone
	}
	c.server.failed.Do(func() {
		c.server.opts.Logger.Warn("a TLS handshake failed", "err", why, "from", c.remote)
	})
}

// closeNotify tells the client that no more comes.
func (c *stream) closeNotify() error {
	_ = c.secure.CloseWrite() // it fails after a failed handshake
	return c.backlog.wait()
}
