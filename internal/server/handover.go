package server

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A handover is the listener of connections accepted elsewhere.
type handover struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newHandover(addr net.Addr) *handover {
	h := &handover{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

// give waits until conn is accepted; false: it never is.
func (h *handover) give(conn net.Conn) bool {
	select {
	case h.conns <- conn:
		return true
	case <-h.closed: // the server has stopped
		return false
	}
}

// Accept implements [net.Listener].
func (h *handover) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (h *handover) Close() error {
	h.close()
	return nil
}

// Addr implements [net.Listener].
func (h *handover) Addr() net.Addr { return h.addr }

// A webHandover is that of net/http, which drops requests that it reads while it stops.
type webHandover struct {
	*handover

	mu    sync.Mutex
	fresh map[net.Conn]struct{} // net/http has not answered the first request of these
	empty chan struct{}         // closed when fresh is empty; nil: nothing waits for that
}

func newWebHandover(addr net.Addr) *webHandover {
	return &webHandover{handover: newHandover(addr), fresh: make(map[net.Conn]struct{})}
}

// give waits until conn is accepted, or closes it.
func (h *webHandover) give(conn net.Conn) {
	h.mu.Lock()
	h.fresh[conn] = struct{}{}
	h.mu.Unlock()
	if !h.handover.give(conn) {
		_ = conn.Close()
		h.settled(conn)
	}
}

// observe returns what net/http tells the states of connections, and next after it.
func (h *webHandover) observe(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(conn net.Conn, state http.ConnState) {
		if state != http.StateNew && state != http.StateActive {
			h.settled(conn)
		}
		next(conn, state)
	}
}

// settled takes in that conn has been answered, or has ended.
func (h *webHandover) settled(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.fresh, conn)
	if len(h.fresh) == 0 && h.empty != nil {
		close(h.empty)
		h.empty = nil
	}
}

// wait waits until the first request of each connection is answered. Its client has no longer
// than [readHeaderTimeout] to send it.
func (h *webHandover) wait(ctx context.Context) error {
	select {
	case <-h.allSettled():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// allSettled returns a channel that closes when no connection is fresh.
func (h *webHandover) allSettled() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.empty != nil {
		return h.empty
	}
	empty := make(chan struct{})
	if len(h.fresh) == 0 {
		close(empty)
	} else {
		h.empty = empty
	}
	return empty
}
