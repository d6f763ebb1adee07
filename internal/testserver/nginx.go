package testserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A NginxServer is a private nginx in front of the servers in its configuration.
type NginxServer struct {
	Port int
	Dir  string

	http    string
	started bool
	proc    *process
}

// Nginx starts an nginx that ends with the test. http is the content of the block of that name; its
// "listen 80;" becomes the port.
func Nginx(t TB, http string) *NginxServer {
	t.Helper()
	s, err := StartNginx(http)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// StartNginx starts an nginx that ends with [NginxServer.Close].
func StartNginx(http string) (*NginxServer, error) {
	dir, err := os.MkdirTemp("", "nginx-")
	if err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	s := &NginxServer{Dir: dir, http: http}
	if err := startOn(&s.Port, &s.started, s.run, s.kill); err != nil {
		s.Close()
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	return s, nil
}

// URL is the server's address.
func (s *NginxServer) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// PID is the server's one process.
func (s *NginxServer) PID() int { return s.proc.cmd.Process.Pid }

// Log returns the end of the error log.
func (s *NginxServer) Log() string { return s.proc.out.tail() }

func (s *NginxServer) run() error {
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx" // which a user's PATH need not have
	}
	config := filepath.Join(s.Dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(s.config()), 0o600); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	if s.proc, err = start(exec.Command(path, "-p", s.Dir, "-c", config, "-e", "stderr")); err != nil {
		return fmt.Errorf("start nginx: %w: install nginx (make test does it on Debian as root)", err)
	}
	deadline := time.After(startTimeout)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("start nginx: it ended\n%s", s.Log())
		case <-deadline:
			return fmt.Errorf("start nginx: %w\n%s", err, s.Log())
		case <-poll.C:
		}
	}
}

// config is one process in the foreground, that writes into its own folder only.
func (s *NginxServer) config() string {
	var b strings.Builder
	b.WriteString("daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n")
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s;\n", what, what)
	}
	b.WriteString(strings.ReplaceAll(s.http, "listen 80;", fmt.Sprintf("listen 127.0.0.1:%d;", s.Port)))
	b.WriteString("\n}\n")
	return b.String()
}

func (s *NginxServer) kill() error {
	if s.proc == nil {
		return nil
	}
	return s.proc.end(syscall.SIGKILL)
}

// Close ends the server.
func (s *NginxServer) Close() {
	_ = s.kill() // nothing is kept
	_ = os.RemoveAll(s.Dir)
}
