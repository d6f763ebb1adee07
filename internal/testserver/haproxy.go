package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// An HAProxyServer is a private HAProxy in front of the servers in its configuration.
type HAProxyServer struct {
	private
	config string
}

// HAProxy starts an HAProxy that ends with the test. The "bind :80" of its configuration becomes the
// port.
func HAProxy(t TB, config string) *HAProxyServer {
	t.Helper()
	s := &HAProxyServer{config: config}
	s, err := privately(s, &s.private, "haproxy")
	return until(t, s, err)
}

// Start starts the server, and returns when it answers.
func (s *HAProxyServer) Start() error { return s.startOn(s.run) }

// URL is the server's address.
func (s *HAProxyServer) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

func (s *HAProxyServer) run() error {
	path, err := exec.LookPath("haproxy")
	if err != nil {
		path = "/usr/sbin/haproxy" // which a user's PATH need not have
	}
	file := filepath.Join(s.Dir, "haproxy.cfg")
	config := strings.ReplaceAll(s.config, "bind :80\n", fmt.Sprintf("bind 127.0.0.1:%d\n", s.Port))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return fmt.Errorf("start HAProxy: %w", err)
	}
	if s.proc, err = start(exec.Command(path, "-db", "-q", "-f", file)); err != nil {
		return fmt.Errorf("start HAProxy: %w: install haproxy (make test does it on Debian as root)", err)
	}
	return s.proc.await("start HAProxy", s.accepts)
}
