package conns

import (
	"context"
	"crypto/tls"
	"net"
)

// MaxInput is how much input a session may leave unread. It takes something of more, or ends
// the connection.
const MaxInput = 64 << 10

// A Session is a protocol's state of one connection. Its methods run one after the other, and do
// not wait: other connections get their turn after they return.
type Session interface {
	// Serve executes the complete requests at the beginning of in, appends the replies to out, and
	// returns the number of bytes of in that it took. It may stop early, and must after
	// [Conn.Later]. The server calls it again with the rest if it took something or called
	// [Conn.More].
	Serve(in, out []byte) (taken int, _ []byte)

	// MayIdle reports whether the client may stay without sending a request. Until then its input
	// must lead there within the time of one request.
	MayIdle() bool

	// HalfClosed is called when the client sends no more, and rest cannot be taken. The
	// connection ends, unless it is handed over.
	HalfClosed(rest []byte)

	// Closed is called once, when the connection has ended.
	Closed()
}

// A Handler makes the session of a connection.
type Handler func(c *Conn) Session

// A Conn is a connection as its session sees it. Its methods are called from those of the
// session alone.
type Conn struct {
	server        *Server
	session       Session
	local, remote net.Addr
	tls           *tls.ConnectionState

	later  func(ctx context.Context, out []byte) []byte
	ending bool           // no request is carried out any more
	heir   func(net.Conn) // takes the connection over; nil: it stays
	more   bool           // the session has more of a reply
}

// LocalAddr returns the address of the server.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the client.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// TLS returns the state of an encrypted connection, nil for others.
func (c *Conn) TLS() *tls.ConnectionState { return c.tls }

// More has Serve called again, when the client has read enough of the replies so far, also without
// further input. A session makes a long reply in pieces.
func (c *Conn) More() { c.more = true }

// Later has f called after the replies so far are sent, where it may wait. It appends
// replies to out. No further request is carried out before it returns. ctx ends when the
// server cannot wait for it any longer.
func (c *Conn) Later(f func(ctx context.Context, out []byte) []byte) { c.later = f }

// End closes the connection after the replies so far.
func (c *Conn) End() { c.ending = true }

// HandOver gives the connection, with its unread input, to heir, which may wait.
func (c *Conn) HandOver(heir func(net.Conn)) { c.heir = heir }

// leaves reports whether the connection is handed over.
func (c *Conn) leaves() bool { return c.heir != nil }

// A peer is a connection in one of the two forms.
type peer interface {
	RemoteAddr() net.Addr
	stop() // ends it after the answers to its read requests
	cut()  // ends it at once
}
