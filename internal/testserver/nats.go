package testserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A NATSServer is a private NATS with JetStream on 127.0.0.1. Its methods are not safe for
// concurrent use, except for URL.
type NATSServer struct {
	Port int
	Dir  string // holds the data

	proc    *process
	started bool
}

// NATS starts a server that ends with t.
func NATS(t TB) *NATSServer {
	t.Helper()
	s, err := StartNATS()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// StartNATS starts a server that ends with [NATSServer.Close].
func StartNATS() (*NATSServer, error) {
	dir, err := os.MkdirTemp("", "leafnats")
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	s := &NATSServer{Dir: dir}
	if err := s.Start(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Addr is the server's address.
func (s *NATSServer) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// URL is the server's address as its clients take it.
func (s *NATSServer) URL() string { return "nats://" + s.Addr() }

// Start starts the server after [NATSServer.Kill], on the same port and data, and returns
// when it answers.
func (s *NATSServer) Start() error { return startOn(&s.Port, &s.started, s.run, s.Kill) }

func (s *NATSServer) run() (err error) {
	path, err := exec.LookPath("nats-server")
	if err != nil {
		return fmt.Errorf("%w: install nats-server (make test does it on Debian as root)", err)
	}
	cmd := exec.Command(path, "-a", "127.0.0.1", "-p", fmt.Sprint(s.Port), "-js", "-sd", filepath.Join(s.Dir, "data"))
	if s.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start nats: %w", err)
	}
	deadline := time.After(startTimeout)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("start nats: it ended\n%s", s.proc.out.tail())
		case <-deadline:
			return fmt.Errorf("start nats: %w\n%s", err, s.proc.out.tail())
		case <-poll.C:
		}
	}
}

// Kill ends the server at once, as kill -9 does, and waits for its end.
func (s *NATSServer) Kill() error {
	if s.proc == nil || s.proc.ended() {
		return nil
	}
	if err := s.proc.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-s.proc.done
	return nil
}

// Pause freezes the server: connections stand, nothing answers.
func (s *NATSServer) Pause() error { return s.proc.signal(syscall.SIGSTOP) }

// Resume ends [NATSServer.Pause].
func (s *NATSServer) Resume() error { return s.proc.signal(syscall.SIGCONT) }

// Close ends the server and deletes its data.
func (s *NATSServer) Close() {
	_ = s.Kill() // the data goes away as well: nothing to save
	_ = os.RemoveAll(s.Dir)
}
