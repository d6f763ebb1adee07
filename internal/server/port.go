package server

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A port is an address that the server listens on, or will.
type port struct {
	asked    string
	addr     net.Addr     // what asked has turned out to be
	listener net.Listener // not open yet where the server waits for its schemes; nil if it was taken meanwhile
}

// bind takes a port. The error wraps kind, if not nil.
func bind(asked string, kind error) (*port, error) {
	listener, err := net.Listen("tcp", asked)
	if err != nil && kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &port{asked, listener.Addr(), listener}, nil
}

// close closes the port; it may be closed already.
func (p *port) close() {
	if p.listener != nil {
		_ = p.listener.Close()
	}
}

// reopen opens the port after close.
func (p *port) reopen() (err error) {
	if p.listener, err = net.Listen("tcp", p.String()); err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	return nil
}

// String is the address for people. It names all interfaces as the configuration does, because the
// system calls those of IPv4 "[::]" as well.
func (p *port) String() string {
	asked, _, err := net.SplitHostPort(p.asked)
	tcp, ok := p.addr.(*net.TCPAddr)
	if err != nil || !ok || !tcp.IP.IsUnspecified() {
		return p.addr.String()
	}
	return net.JoinHostPort(cmp.Or(asked, "0.0.0.0"), strconv.Itoa(tcp.Port))
}

// number is the number of the port.
func (p *port) number() int {
	if tcp, ok := p.addr.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// ports lists those that the server listens on.
func (s *Server) ports() []*port {
	var all []*port
	for _, p := range []*port{s.web, s.redis, s.grpcPort} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// public returns a port that other machines reach, or nil.
func (s *Server) public() *port {
	for _, p := range s.ports() {
		if !frontend.IsLoopback(p.addr) {
			return p
		}
	}
	return nil
}
