package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// startTimeout bounds the start of a server on a busy machine.
const startTimeout = 30 * time.Second

// A node is one server, running or not, behind its proxy.
type node struct {
	world *world
	data  string
	proxy *proxy

	mu   sync.Mutex
	cmd  *exec.Cmd     // nil: it is not running
	done chan struct{} // closed when it has ended
}

func newNode(w *world, i int) (*node, error) {
	p, err := newProxy()
	if err != nil {
		return nil, err
	}
	return &node{world: w, data: filepath.Join(w.dir, strconv.Itoa(i)), proxy: p}, nil
}

// harm does one of these to the server:
//
//	kill     ends it, as kill -9 does      start   starts it
//	pause    freezes it                    resume  ends that
//	lose     its answers are lost          slow    its answers take half a second longer
//	refuse   it refuses connections        silence it takes requests and does not answer
//	pass     ends these four
//	empty    kill, and its store is replaced by an empty one with the same tags; then start
func (n *node) harm(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch name {
	case "kill":
		return n.stop()
	case "start":
		return n.run()
	case "pause":
		return n.signal(syscall.SIGSTOP)
	case "resume":
		return n.signal(syscall.SIGCONT)
	case "lose", "slow", "refuse", "silence", "pass":
		n.proxy.set(name)
		return nil
	case "empty":
		return n.empty()
	}
	return fmt.Errorf("unknown harm %q", name)
}

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run()
}

func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.stop() // it is gone anyway
}

func (n *node) stop() error {
	if n.cmd == nil {
		return nil
	}
	err := n.cmd.Process.Kill()
	<-n.done
	n.cmd = nil
	n.proxy.cut()
	return err
}

func (n *node) signal(s syscall.Signal) error {
	if n.cmd == nil {
		return errors.New("the server is not running")
	}
	return n.cmd.Process.Signal(s)
}

// empty replaces the store, and refuses connections until the new one is complete.
func (n *node) empty() error {
	_, mode := n.proxy.now()
	n.proxy.set("refuse")
	defer n.proxy.set(mode)
	if err := n.stop(); err != nil {
		return err
	}
	for _, path := range []string{n.data, n.world.store(), n.world.store() + "-wal", n.world.store() + "-shm"} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := n.world.initStore(); err != nil {
		return err
	}
	if err := n.run(); err != nil {
		return err
	}
	return n.world.fill()
}

var serving = regexp.MustCompile(`msg=serving.* url=https?://(\S+)`)

// run starts the server and waits until it listens and holds a worker ID.
func (n *node) run() error {
	if n.cmd != nil {
		return nil
	}
	log := new(output)
	cmd := exec.Command(n.world.binary, "serve", "--listen", "127.0.0.1:0", "--data", n.data, "--store", "sqlite:"+n.world.store())
	cmd.Env, cmd.Stderr = append(environment(), n.world.env...), log
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		_ = cmd.Wait() // killed is an error, too
		close(done)
	}(n.done)
	for deadline := time.After(startTimeout); ; {
		text := log.bytes()
		if m := serving.FindSubmatch(text); m != nil && bytes.Contains(text, []byte("holding a worker ID")) {
			n.proxy.lead(string(m[1]))
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-n.done:
		case <-deadline:
			_ = n.stop() // the log says more than its error
		}
		n.cmd = nil
		return fmt.Errorf("the server does not start: %s", text)
	}
}

// An output is a log that others read.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes())
}
