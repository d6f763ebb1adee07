package e2e_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A shell runs commands the way a reader does, with at most one server at a time. A
// command that serves ends the server before it, as Ctrl-C does.
type shell struct {
	t       *testing.T
	dir     string
	env     []string
	addr    string // where servers listen
	resp    string // likewise, for the Redis protocol
	private *strings.Replacer

	server *exec.Cmd
	output *bytes.Buffer
	ended  chan error // gets the server's end
}

func newShell(t *testing.T) *shell {
	t.Helper()
	sh := &shell{t: t, dir: t.TempDir(), addr: freeAddr(t), resp: freeAddr(t)}
	copyCheckout(t, sh.dir)
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/leaf", "./cmd/leaf-bench")
	build.Dir = sh.dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	db := testserver.MariaDB(t, nil)
	db.Exec(t, "", "CREATE DATABASE leaf", "CREATE USER leaf IDENTIFIED BY 'secret'", "GRANT ALL ON leaf.* TO leaf")
	dsn, err := url.Parse(db.URL("leaf"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(sh.resp)
	if err != nil {
		t.Fatal(err)
	}
	sh.private = strings.NewReplacer("localhost:8080", sh.addr, "127.0.0.1:3306", dsn.Host, "-p 6380", "-p "+port, "drain_delay: 5s", "drain_delay: 0s")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LEAF_") && !strings.HasPrefix(v, "PATH=") {
			sh.env = append(sh.env, v)
		}
	}
	sh.env = append(sh.env, "LEAF_SERVER=http://"+sh.addr, "LEAF_ID_SPACE="+t.Name(), "PATH="+bin+":"+os.Getenv("PATH"))
	t.Cleanup(sh.kill)
	return sh
}

func (sh *shell) write(name, text string) {
	sh.t.Helper()
	path := filepath.Join(sh.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		sh.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(sh.private.Replace(text)), 0o600); err != nil {
		sh.t.Fatal(err)
	}
}

func (sh *shell) run(c command) {
	sh.t.Helper()
	line := sh.private.Replace(c.line)
	switch {
	case strings.Contains(line, "leaf serve"):
		sh.stopServer()
		sh.serve(line + " --listen " + sh.addr + " --resp " + sh.resp)
		return
	case strings.HasPrefix(line, "export "):
		sh.export(line)
		return
	case strings.HasPrefix(line, "make "):
		line = strings.Replace(line, "make", "make --dry-run", 1) // make test would run this test
	}
	cmd := sh.command(line)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		sh.t.Fatalf("%s: %v\n%s%s", c.line, err, out, &stderr)
	}
	got, want := strings.TrimSpace(string(out)), strings.Join(c.want, "\n")
	if c.want != nil && got != want {
		sh.t.Fatalf("%s: printed\n%s\nand not\n%s", c.line, got, want)
	}
}

// export sets a variable for the commands that follow, as a line of a terminal does.
func (sh *shell) export(line string) {
	sh.t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "export "), "=")
	value, err := sh.command(line + `; printf %s "$` + name + `"`).Output()
	if err != nil {
		sh.t.Fatalf("%s: %v", line, err)
	}
	sh.env = append(sh.env, name+"="+string(value))
}

// startOver ends the server, and forgets its data, the files of the page, and what was exported since.
func (sh *shell) startOver(env []string) {
	sh.t.Helper()
	sh.stopServer()
	sh.env = env
	for _, pattern := range []string{"leaf-data", "store", "*.token", "*.yaml", "*.key"} {
		files, _ := filepath.Glob(filepath.Join(sh.dir, pattern)) // the patterns are right
		for _, file := range files {
			if err := os.RemoveAll(file); err != nil {
				sh.t.Fatal(err)
			}
		}
	}
}

func (sh *shell) command(line string) *exec.Cmd {
	cmd := exec.CommandContext(sh.t.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = sh.dir, sh.env
	return cmd
}

// serve starts a server and returns when it is ready.
func (sh *shell) serve(line string) {
	sh.t.Helper()
	sh.server, sh.output, sh.ended = sh.command("exec "+line), new(bytes.Buffer), make(chan error, 1)
	sh.server.Stdout, sh.server.Stderr = sh.output, sh.output
	sh.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has a child
	if err := sh.server.Start(); err != nil {
		sh.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(sh.server, sh.ended)
	deadline, poll := time.After(2*time.Minute), time.NewTicker(50*time.Millisecond)
	defer poll.Stop()
	for !sh.ready() {
		select {
		case err := <-sh.ended:
			sh.server = nil
			sh.t.Fatalf("%s: it ended: %v\n%s", line, err, sh.output)
		case <-deadline:
			sh.kill()
			sh.t.Fatalf("%s: not ready\n%s", line, sh.output)
		case <-poll.C:
		}
	}
}

func (sh *shell) ready() bool {
	res, err := http.Get("http://" + sh.addr + "/readyz")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// stopServer ends a running server and requires a clean end.
func (sh *shell) stopServer() {
	sh.t.Helper()
	if sh.server == nil {
		return
	}
	viaGo := strings.Contains(sh.server.String(), "go run") // which fails on any interrupt
	if err := syscall.Kill(-sh.server.Process.Pid, syscall.SIGINT); err != nil {
		sh.t.Fatalf("interrupt the server: %v", err)
	}
	select {
	case err := <-sh.ended:
		sh.server = nil
		if err != nil && !viaGo {
			sh.t.Fatalf("the server ended with %v\n%s", err, sh.output)
		}
	case <-time.After(time.Minute):
		sh.kill()
		sh.t.Fatalf("the server does not end\n%s", sh.output)
	}
}

// kill ends a running server without a drain.
func (sh *shell) kill() {
	if sh.server == nil {
		return
	}
	_ = syscall.Kill(-sh.server.Process.Pid, syscall.SIGKILL) // it may have ended by itself
	<-sh.ended
	sh.server = nil
}

// copyCheckout copies the checkout without its history and without what make build and
// a server left there.
func copyCheckout(t *testing.T, dir string) {
	t.Helper()
	root := filepath.Clean("..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, strings.TrimPrefix(path, root))
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "leaf-data", "node_modules"}, d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o755)
	})
	if err != nil {
		t.Fatalf("copy the checkout: %v", err)
	}
}

// freeAddr is an address on loopback where no program listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}
