package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leaf-id/leaf/internal/testserver"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"leaf": main})
}

// TestScripts runs the scripts in testdata/script. Beside testscript's own commands
// they have
//
//	exits CODE leaf ARG...     run leaf and check its exit code
//	server NAME [ARG...]       start leaf serve on a free port: its URL becomes $LEAF_SERVER, its address $NAME_ADDR,
//	                           that of its Redis protocol, if that is on, $NAME_RESP
//	logged NAME TEXT           wait until the server has logged TEXT
//	shutdown NAME              stop it cleanly; its log becomes the file NAME.log
//	killed NAME                end it with SIGKILL
//	eventually leaf ARG...     run leaf until it succeeds
//
// $PEER1 to $PEER4 are free addresses. $STATIC is a worker ID that no other process of this machine has by static:.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("STATIC", strconv.Itoa(testserver.FreeWorker(t, 31))) // that of the smallest layout
			env.Setenv("LEAF_RESP", "off")
			for i := range 4 {
				port, err := testserver.FreePort()
				if err != nil {
					return err
				}
				env.Setenv(fmt.Sprintf("PEER%d", i+1), fmt.Sprintf("127.0.0.1:%d", port))
			}
			env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at each exit
			env.Values[serversKey{}] = map[string]*process{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      scriptExits,
			"server":     scriptServer,
			"logged":     scriptLogged,
			"shutdown":   scriptShutdown,
			"killed":     scriptKilled,
			"eventually": scriptEventually,
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

type serversKey struct{}

func serverNamed(ts *testscript.TestScript, name string) *process {
	p := ts.Value(serversKey{}).(map[string]*process)[name]
	if p == nil {
		ts.Fatalf("there is no server %s", name)
	}
	return p
}

func scriptServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: server NAME [ARG...]")
	}
	env := []string{"TZ=UTC"}
	for _, name := range []string{"PATH", "HOME", "GORACE", "LEAF_RESP", "LEAF_CONFIG", "LEAF_STORE", "LEAF_STORE_FILE", "LEAF_LOG_FORMAT"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	p, err := startServer(ts.MkAbs("."), env, args[1:]...)
	ts.Check(err)
	ts.Defer(p.kill)
	ts.Value(serversKey{}).(map[string]*process)[args[0]] = p
	ts.Setenv("LEAF_SERVER", p.url)
	ts.Setenv(args[0]+"_ADDR", strings.TrimPrefix(p.url, "http://"))
	if resp := servingRESP.FindStringSubmatch(p.text()); resp != nil {
		ts.Setenv(args[0]+"_RESP", resp[1])
	}
}

func scriptLogged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: logged NAME TEXT")
	}
	if _, err := serverNamed(ts, args[0]).waitFor(regexp.MustCompile(regexp.QuoteMeta(args[1]))); err != nil {
		ts.Fatalf("%v", err)
	}
}

func scriptShutdown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shutdown NAME")
	}
	p := serverNamed(ts, args[0])
	ts.Check(p.cmd.Process.Signal(syscall.SIGTERM))
	err := p.wait()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), []byte(p.text()), 0o600))
	if err != nil {
		ts.Fatalf("server %s: %v\n%s", args[0], err, p.text())
	}
}

func scriptKilled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: killed NAME")
	}
	serverNamed(ts, args[0]).kill()
}

func scriptEventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually leaf ARG...")
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-again.C {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v", err)
		}
	}
}

// A process is a running `leaf serve`.
type process struct {
	cmd  *exec.Cmd
	err  io.Closer // the read end of its stderr
	url  string
	mu   sync.Mutex
	more chan struct{} // closed, and replaced, when log grows; nil at its end
	log  []byte
	wait func() error // for the end of the process
}

var servingURL = regexp.MustCompile(`"?url"?[=:]"?(https?://[^" ]+)`)

var servingRESP = regexp.MustCompile(`"?resp"?[=:]"?([^" ]+:[0-9]+)`)

// startServer runs `leaf serve` on a free port and returns once it serves.
func startServer(dir string, env []string, args ...string) (*process, error) {
	cmd := exec.Command("leaf", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Env = dir, append([]string{"LEAF_RESP=off", "LEAF_LOG_FORMAT=text", "LEAF_ID_SPACE=" + dir}, env...) // there is one default port, and one machine
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, err: stderr, more: make(chan struct{})}
	read := make(chan struct{})
	go func() { defer close(read); p.read(stderr) }()
	p.wait = sync.OnceValue(func() error { <-read; return cmd.Wait() })
	found, err := p.waitFor(servingURL)
	if err != nil {
		p.kill()
		return nil, err
	}
	p.url = found[1]
	return p, nil
}

// read collects the log until the process closes it.
func (p *process) read(stderr io.Reader) {
	for r := bufio.NewReader(stderr); ; {
		line, err := r.ReadBytes('\n')
		p.mu.Lock()
		p.log = append(p.log, line...)
		close(p.more)
		p.more = make(chan struct{})
		if err != nil {
			p.more = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// waitFor waits for the log to match.
func (p *process) waitFor(pattern *regexp.Regexp) ([]string, error) {
	deadline := time.After(2 * time.Minute)
	for {
		p.mu.Lock()
		found, more := pattern.FindStringSubmatch(string(p.log)), p.more
		p.mu.Unlock()
		switch {
		case found != nil:
			return found, nil
		case more == nil:
			return nil, fmt.Errorf("the server ended without logging %q:\n%s", pattern, p.text())
		}
		select {
		case <-more:
		case <-deadline:
			return nil, fmt.Errorf("the server did not log %q:\n%s", pattern, p.text())
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.log)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	_ = p.wait()
}
