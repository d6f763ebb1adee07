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
	first    bool
	protocol protocol
	asked    string
	addr     net.Addr     // what asked has turned out to be
	listener net.Listener // not open yet where the server waits for its schemes; nil if it was taken meanwhile
}

// A PortError reports that the server cannot listen on the address of a front end other than the
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
		p := &port{FrontEnd: f, first: i == 0, asked: f.address(&s.cfg)}
		if p.asked == config.Off {
			continue
		}
		switch err := p.listen(p.asked); {
		case err == nil:
			p.addr = p.listener.Addr()
			s.ports = append(s.ports, p)
		case !s.servesWithout(p, err):
			return err
		}
	}
	return nil
}

// listen opens the port.
func (p *port) listen(address string) (err error) {
	if p.listener, err = net.Listen("tcp", address); err == nil {
		return nil
	}
	if !p.first {
		err = &PortError{p.FrontEnd, err}
	}
	return fmt.Errorf("start server: %w", err)
}

// servesWithout reports whether err is a taken default address of a front end: the operator did not
// choose it, so the server runs without that front end. It logs that.
func (s *Server) servesWithout(p *port, err error) bool {
	if !errors.Is(err, syscall.EADDRINUSE) || p.first || p.asked != p.Default {
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
	return !slices.ContainsFunc(s.ports, func(p *port) bool { return !p.onlyIDs && !frontend.IsLoopback(p.addr) })
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
