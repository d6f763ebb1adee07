package rpcapi

import (
	"context"
	"net"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// Serve serves the connections of l until [GRPC.Shutdown].
func (g *GRPC) Serve(l net.Listener) error {
	limited := conns.Limit(l, g.opts.Conns)
	g.conns.Store(limited)
	return g.calls.Serve(&port{limited, g.opts.AnswerTimeout})
}

// Shutdown accepts no more connections, tells clients to make their next calls elsewhere, and lets
// calls finish until ctx ends.
func (g *GRPC) Shutdown(ctx context.Context) error {
	return frontend.Within(ctx, g.calls.GracefulStop)
}

// Close cuts all connections.
func (g *GRPC) Close() { g.calls.Stop() }

// Stats returns the number of open connections, and of refused ones.
func (g *GRPC) Stats() (open int, refused int64) { return g.conns.Load().Stats() }

// A port bounds how long a client may leave output unread.
type port struct {
	net.Listener
	limit time.Duration
}

// Accept implements [net.Listener].
func (p *port) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &readerConn{Conn: conn, limit: p.limit}, nil
}

// A readerConn is closed when its client does not read for too long. One goroutine writes at a
// time.
type readerConn struct {
	net.Conn
	limit time.Duration
	set   time.Time // when the deadline was set
}

// Write implements [net.Conn].
func (c *readerConn) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.set) > c.limit/8 { // setting it each time would be felt
		c.set = now
		_ = c.SetWriteDeadline(now.Add(c.limit)) // fails where the write does
	}
	return c.Conn.Write(p)
}
