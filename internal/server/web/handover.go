package web

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/leaf-id/leaf/internal/server/frontend"
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
	fresh   sync.Map // of connections whose first request net/http has not answered
	waiting sync.WaitGroup
}

func newFreshHandover() *freshHandover { return &freshHandover{handover: newHandover()} }

// give waits until conn is accepted, or closes it. Nothing waits for a closed one: the server has
// stopped.
func (h *freshHandover) give(conn net.Conn) {
	h.waiting.Add(1)
	h.fresh.Store(conn, nil)
	h.handover.give(conn)
}

// connState is the http.Server's ConnState.
func (h *freshHandover) connState(conn net.Conn, state http.ConnState) {
	if state == http.StateNew || state == http.StateActive {
		return
	}
	if _, ok := h.fresh.LoadAndDelete(conn); ok { // it has been answered, or has ended
		h.waiting.Done()
	}
}

// wait waits until the first request of each connection is answered. Its client has no longer
// than [frontend.RequestTimeout] to send it. Nothing is given any more.
func (h *freshHandover) wait(ctx context.Context) error {
	return frontend.Within(ctx, h.waiting.Wait)
}
