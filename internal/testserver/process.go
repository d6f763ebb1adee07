package testserver

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is one server process that this package started.
type process struct {
	cmd  *exec.Cmd
	out  Output
	done chan struct{} // closed once the process has ended
}

// start runs cmd. The goroutine that starts it keeps its thread until the process
// has ended: on Linux a child is tied to the life of the thread that made it.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the error of a killed server is normal
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// startOn calls run to start the server on its port, or on a free one. Before the first start no
// test knows the port, so any other one will do.
func (s *private) startOn(run func() error) (err error) {
	for range 3 {
		if s.Port == 0 {
			if s.Port, err = FreePort(); err != nil {
				return err
			}
		}
		if err = run(); err == nil {
			s.started = true
			return nil
		}
		_ = s.Kill() // what did not come up has nothing to lose
		if s.started {
			return err
		}
		s.Port = 0 // another process took it meanwhile
	}
	return err
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end sends sig and waits for the process to end. Without a process there is nothing to end.
func (p *process) end(sig syscall.Signal) error {
	if p == nil || p.ended() {
		return nil
	}
	if err := p.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) { // it may end by itself
		return fmt.Errorf("stop %s: %w", p.cmd.Path, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("stop %s: it did not end", p.cmd.Path)
	}
}

// pause freezes the process, and waits until it is.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", p.cmd.Path, err)
	}
	return p.await("pause "+p.cmd.Path, func() error {
		if frozen(p.cmd.Process.Pid) {
			return nil
		}
		return errors.New("it did not stop")
	})
}

// await waits until ready returns nil or the process ends.
func (p *process) await(what string, ready func() error) error {
	deadline := time.After(startTimeout)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s: it ended\n%s", what, p.out.tail())
		case <-deadline:
			return fmt.Errorf("%s: %w\n%s", what, err, p.out.tail())
		case <-poll.C:
		}
	}
}

// answers returns a call that asks a database whether it answers.
func answers(db *sql.DB) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		return db.PingContext(ctx)
	}
}

// A private is one server process on 127.0.0.1 with its port and its data.
type private struct {
	Port int
	Dir  string // holds the data

	proc    *process
	started bool
}

// privately starts a server with a new folder, whose name begins with name.
func privately[S interface {
	Start() error
	Close()
}](s S, p *private, name string) (S, error) {
	var none S
	var err error
	if p.Dir, err = os.MkdirTemp("", name); err != nil {
		return none, fmt.Errorf("start %s: %w", name, err)
	}
	if err := s.Start(); err != nil {
		s.Close()
		return none, err
	}
	return s, nil
}

// until returns a server that ends with t.
func until[S interface{ Close() }](t TB, s S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Addr is the server's address, as clients take it.
func (s *private) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// PID is the server's process.
func (s *private) PID() int { return s.proc.cmd.Process.Pid }

// Stop ends the server in good order and waits for its end.
func (s *private) Stop() error { return s.proc.end(syscall.SIGTERM) }

// Kill ends the server at once, as kill -9 does, and waits for its end.
func (s *private) Kill() error { return s.proc.end(syscall.SIGKILL) }

// Pause freezes the server: its connections stay open, nothing answers.
func (s *private) Pause() error { return s.proc.pause() }

// Resume ends Pause.
func (s *private) Resume() error { return s.proc.signal(syscall.SIGCONT) }

// Close ends the server and deletes its data.
func (s *private) Close() {
	_ = s.Kill() // nothing is kept
	_ = os.RemoveAll(s.Dir)
}

// Log returns the end of the server's log.
func (s *private) Log() string { return s.proc.out.tail() }

// accepts reports whether the server takes connections.
func (s *private) accepts() error {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// frozen reports whether all threads of a process have stopped: a signal takes effect later.
// Without /proc it reports true.
func frozen(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return true
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, state, _ := strings.Cut(string(text), ") ") // after the name, which may hold anything but this
		if !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// taken holds what claims the ports that this process was given.
var taken struct {
	sync.Mutex
	claims []io.Closer
}

// FreePort returns a TCP port of loopback that no other test on this machine is given for as
// long as this process lives. A server could otherwise find its port taken by another one,
// which then answers in its place. The system gives clients ports above these.
func FreePort() (int, error) {
	for range 1000 {
		port := 12_000 + rand.IntN(20_000)
		claim, err := claimPort(port)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_ = claim.Close()
			continue
		}
		taken.Lock()
		taken.claims = append(taken.claims, claim)
		taken.Unlock()
		return port, l.Close()
	}
	return 0, errors.New("look for a free port: found none")
}

// claimPort claims a port until this process ends. Only Linux has sockets without a file.
func claimPort(port int) (io.Closer, error) {
	if runtime.GOOS != "linux" {
		return io.NopCloser(nil), nil
	}
	return net.Listen("unix", fmt.Sprintf("@leaf-test/%d", port))
}

// An Output is a buffer that a test reads while others write to it.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// tail returns the end of the output.
func (o *Output) tail() string {
	text := o.String()
	return text[max(0, len(text)-4096):]
}
