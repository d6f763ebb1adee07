package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A NginxServer is a private nginx in front of the servers in its configuration.
type NginxServer struct {
	private
	http string
}

// Nginx starts an nginx that ends with the test. http is the content of the block of that name; its
// "listen 80" becomes the port.
func Nginx(t TB, http string) *NginxServer {
	t.Helper()
	s, err := StartNginx(http)
	return until(t, s, err)
}

// StartNginx starts an nginx that ends with Close.
func StartNginx(http string) (*NginxServer, error) {
	s := &NginxServer{http: http}
	return privately(s, &s.private, "nginx")
}

// Start starts the server, and returns when it answers.
func (s *NginxServer) Start() error { return s.startOn(s.run) }

// URL is the server's address.
func (s *NginxServer) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

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
	return s.proc.await("start nginx", s.accepts)
}

// config is one process in the foreground, that writes into its own folder only.
func (s *NginxServer) config() string {
	var b strings.Builder
	b.WriteString("daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n")
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s;\n", what, what)
	}
	b.WriteString(strings.ReplaceAll(s.http, "listen 80", fmt.Sprintf("listen 127.0.0.1:%d", s.Port)))
	b.WriteString("\n}\n")
	return b.String()
}
