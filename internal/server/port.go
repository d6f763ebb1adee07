package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A port is an address that the server listens on, or will, with its front end.
type port struct {
	FrontEnd
	protocol protocol
	asked    string
	addr     net.Addr     // what asked has turned out to be
	listener net.Listener // not open yet where the server waits for its schemes; nil if it was taken meanwhile
}

// A PortError reports that the server cannot listen on the address of a front end, which is not the
// first one.
type PortError struct {
	FrontEnd FrontEnd
	Err      error
}

// Error implements [error].
func (e *PortError) Error() string { return fmt.Sprintf("port of %s: %v", e.FrontEnd.Title, e.Err) }

// Unwrap returns the reason.
func (e *PortError) Unwrap() error { return e.Err }

// bind takes the ports.
func (s *Server) bind() error {
	for i, f := range FrontEnds {
		p := &port{FrontEnd: f, asked: f.address(&s.cfg)}
		if p.asked == config.Off {
			continue
		}
		var err error
		if p.listener, err = net.Listen("tcp", p.asked); err != nil && i > 0 {
			err = &PortError{f, err}
		}
		if s.servesWithout(p, err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("start server: %w", err)
		}
		p.addr = p.listener.Addr()
		s.ports = append(s.ports, p)
	}
	return nil
}

// servesWithout reports whether err is a taken default port of a front end that nobody chose: the
// server then runs without it. It logs that.
func (s *Server) servesWithout(p *port, err error) bool {
	if !errors.Is(err, syscall.EADDRINUSE) || p.Key == FrontEnds[0].Key || p.asked != p.Default() {
		return false
	}
	s.log.Warn(fmt.Sprintf("another program listens on the default port of %s: this server runs without that protocol; "+
		"choose another address with %s, or turn it off", p.Title, p.Key), "address", p.asked)
	return true
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

// main returns the port that names the server.
func (s *Server) main() *port { return s.ports[0] }

// urlOf returns the URL of a port.
func (s *Server) urlOf(p *port) string {
	if s.tls != nil {
		return p.url + "s://" + p.String()
	}
	return p.url + "://" + p.String()
}

// Addr returns the address of the front end with that key; nil: it is off.
func (s *Server) Addr(key string) net.Addr {
	for _, p := range s.ports {
		if p.Key == key {
			return p.addr
		}
	}
	return nil
}

// administeredLocally reports whether only this machine reaches the ports for administrators.
func (s *Server) administeredLocally() bool {
	return !slices.ContainsFunc(s.ports, func(p *port) bool { return p.admin && !frontend.IsLoopback(p.addr) })
}

// public returns a port that other machines reach, or nil.
func (s *Server) public() *port {
	for _, p := range s.ports {
		if !frontend.IsLoopback(p.addr) {
			return p
		}
	}
	return nil
}
