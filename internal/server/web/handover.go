package web

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A handover is the listener of connections accepted elsewhere.
type handover struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newHandover() *handover {
	h := &handover{conns: make(chan net.Conn), closed: make(chan struct{})}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

// give waits until conn is accepted, or closes it.
func (h *handover) give(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.closed: // the server has stopped
		_ = conn.Close()
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
func (h *handover) Addr() net.Addr { return new(net.TCPAddr) }

// A freshHandover is that of HTTP/1: net/http drops requests of it that it reads while it stops.
type freshHandover struct {
	*handover

	mu    sync.Mutex
	fresh map[net.Conn]struct{} // net/http has not answered the first request of these
	empty chan struct{}         // closed when fresh is empty; nil: nothing waits for that
}

func newFreshHandover() *freshHandover {
	return &freshHandover{handover: newHandover(), fresh: make(map[net.Conn]struct{})}
}

// give waits until conn is accepted, or closes it. Nothing waits for a closed one: the server has
// stopped.
func (h *freshHandover) give(conn net.Conn) {
	h.mu.Lock()
	h.fresh[conn] = struct{}{}
	h.mu.Unlock()
	h.handover.give(conn)
}

// observe is the http.Server's ConnState.
func (h *freshHandover) observe(conn net.Conn, state http.ConnState) {
	if state != http.StateNew && state != http.StateActive {
		h.settled(conn)
	}
}

// settled takes in that conn has been answered, or has ended.
func (h *freshHandover) settled(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.fresh, conn)
	if len(h.fresh) == 0 && h.empty != nil {
		close(h.empty)
		h.empty = nil
	}
}

// wait waits until the first request of each connection is answered. Its client has no longer
// than [frontend.RequestTimeout] to send it.
func (h *freshHandover) wait(ctx context.Context) error {
	select {
	case <-h.allSettled():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// allSettled returns a channel that closes when no connection is fresh.
func (h *freshHandover) allSettled() <-chan struct{} {
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
