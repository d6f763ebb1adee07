package conns

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A Listener closes connections beyond the limits of [Options]. It serves other servers than
// [Server].
type Listener struct {
	net.Listener
	opts    Options
	full    rate.Sometimes
	clients Clients

	open, refused atomic.Int64
}

// Limit returns a Listener for the connections of l.
func Limit(l net.Listener, opts Options) *Listener {
	opts.MaxConns = cmp.Or(opts.MaxConns, DefaultMaxConns)
	opts.MaxPerClient = cmp.Or(opts.MaxPerClient, opts.MaxConns)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return &Listener{Listener: l, opts: opts, full: rate.Sometimes{Interval: time.Minute}}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &limited{Conn: conn, listener: l}
		if err = l.add(conn.RemoteAddr()); err == nil {
			return c, nil
		}
		l.refused.Add(1)
		_ = c.Close() // it has read nothing
		l.full.Do(func() { l.opts.Logger.Warn("a connection was closed", "err", err, "from", conn.RemoteAddr()) })
	}
}

// add counts a connection, and returns the limit that it exceeds.
func (l *Listener) add(client net.Addr) error {
	open, its := l.open.Add(1), l.clients.Add(client)
	switch {
	case open > int64(l.opts.MaxConns):
		return ErrMaxConns
	case its > l.opts.MaxPerClient:
		return ErrMaxPerClient
	}
	return nil
}

// Stats returns the number of open connections, and of refused ones. A nil Listener has no connections.
func (l *Listener) Stats() (open int, refused int64) {
	if l == nil {
		return 0, 0
	}
	return int(l.open.Load()), l.refused.Load()
}

// A limited is a connection of a Listener.
type limited struct {
	net.Conn
	listener *Listener
	closed   sync.Once
}

func (c *limited) Close() error {
	c.closed.Do(func() {
		c.listener.open.Add(-1)
		c.listener.clients.Remove(c.RemoteAddr())
	})
	return c.Conn.Close()
}

// CloseWrite lets net/http end a connection without losing its answers.
func (c *limited) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
