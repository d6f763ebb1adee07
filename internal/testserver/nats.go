package testserver

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// A NATSServer is a private NATS with JetStream on 127.0.0.1. Its methods are not safe for
// concurrent use, except for URL.
type NATSServer struct {
	private
	Args []string // further arguments, from the next Start on
}

// NATS starts a server that ends with t.
func NATS(t TB) *NATSServer {
	t.Helper()
	s, err := StartNATS()
	return until(t, s, err)
}

// StartNATS starts a server that ends with [NATSServer.Close].
func StartNATS() (*NATSServer, error) {
	s := &NATSServer{}
	return privately(s, &s.private, "leafnats")
}

// URL is the server's address as its clients take it.
func (s *NATSServer) URL() string { return "nats://" + s.Addr() }

// Start starts the server after Kill, on the same port and data, and returns when it answers.
func (s *NATSServer) Start() error { return s.startOn(s.run) }

func (s *NATSServer) run() (err error) {
	path, err := exec.LookPath("nats-server")
	if err != nil {
		return fmt.Errorf("%w: install nats-server (make test does it on Debian as root)", err)
	}
	args := []string{"-a", "127.0.0.1", "-p", fmt.Sprint(s.Port), "-js", "-sd", filepath.Join(s.Dir, "data")}
	cmd := exec.Command(path, append(args, s.Args...)...)
	if s.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start nats: %w", err)
	}
	return s.proc.await("start nats", s.accepts)
}
