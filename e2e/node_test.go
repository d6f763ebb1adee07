package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// nodeVariable holds the nodeConfig of a test binary that acts as a node.
const nodeVariable = "LEAF_E2E_NODE"

// A nodeConfig describes a node: a process of its own that holds a worker ID and
// issues IDs, made of the packages that the server is made of, but with a clock that
// can be wrong and a horizon of seconds.
type nodeConfig struct {
	Workers    string // URL of the registry
	Data       string // data directory
	WorkerBits int
	Horizon    time.Duration // extended ten times as often
	Skew       time.Duration // how far the clock is ahead of the right time
	Tolerance  time.Duration // of the clock at the start; 0: the default
	Port       int           // in Java Leaf's tree
	UID        bool          // the layout of uid-generator, in cached mode
}

// layout returns the layout of the node's IDs, and how far they run ahead.
func (c nodeConfig) layout(traits drivers.Traits) (snowflake.Layout, time.Duration) {
	name, ahead := "leaf", traits.MaxAhead
	if c.UID {
		name, ahead = "uid", time.Minute
	}
	layout, _ := snowflake.Preset(name)
	layout.WorkerBits = c.WorkerBits
	return layout, ahead
}

// A nodeAnswer is a node's answer to a command.
type nodeAnswer struct {
	Ranges []leaf.Range
	Worker int64
	Until  time.Time // the horizon
	Err    string
}

func nodeMain(config string) int {
	if err := runNode(config); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		return 1
	}
	return 0
}

func runNode(config string) error {
	var c nodeConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	n, err := newNodeSide(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.keeper.Run(ctx) }()
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() { // it ends with the test binary
		if lines.Text() == "stop" {
			cancel()
			return <-ended
		}
		if err := answers.Encode(n.do(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// A nodeSide is the inside of a node.
type nodeSide struct {
	generator *snowflake.Generator
	keeper    *worker.Keeper
	skew      atomic.Int64 // nanoseconds
}

func newNodeSide(c nodeConfig) (*nodeSide, error) {
	n := new(nodeSide)
	dir, err := datadir.Open(c.Data)
	if err != nil {
		return nil, err
	}
	backend, err := drivers.Open(c.Workers, nil)
	if err != nil {
		return nil, err
	}
	registry, err := backend.Registry(&drivers.RegistryOptions{Lock: dir.Lock, Port: c.Port})
	if err != nil {
		return nil, err
	}
	traits := backend.Traits
	n.skew.Store(int64(c.Skew))
	start := time.Now()
	clock := worker.NewClockFrom(
		func() time.Time { return time.Now().Add(time.Duration(n.skew.Load())) },
		func() time.Duration { return time.Since(start) })
	layout, ahead := c.layout(traits)
	if n.generator, err = snowflake.New(layout, &snowflake.Options{Clock: clock, MaxAhead: ahead}); err != nil {
		return nil, err
	}
	n.keeper, err = worker.NewKeeper(registry, &worker.Options{
		Layouts: []worker.ServedLayout{layout.Record("node")}, LeaseUsers: []worker.LeaseUser{n.generator},
		State: dir.State(), RegistryKey: backend.Key, Clock: clock, Owner: fmt.Sprintf("node %d", os.Getpid()),
		Horizon: c.Horizon, Extend: c.Horizon / 10, MaxAhead: ahead, CallTimeout: time.Second,
		Tolerance: c.Tolerance, Reclaim: traits.Reclaim, Settle: traits.Settle, ClaimDelay: traits.ClaimDelay,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	return n, err
}

// do runs "take N", or "skew D", which sets the wall clock.
func (n *nodeSide) do(line string) (a nodeAnswer) {
	var err error
	verb, arg, _ := strings.Cut(line, " ")
	switch verb {
	case "take":
		var count int
		if _, err = fmt.Sscan(arg, &count); err == nil {
			a.Ranges, err = n.take(count)
		}
	case "skew":
		var d time.Duration
		d, err = time.ParseDuration(arg)
		n.skew.Store(int64(d))
	default:
		err = errors.New("no such command")
	}
	s := n.keeper.Status()
	a.Worker, a.Until = s.Worker, s.Horizon
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// take returns its IDs even with an error. It waits until the clock allows more.
func (n *nodeSide) take(count int) (ranges []leaf.Range, err error) {
	for count > 0 {
		batch := min(count, maxBatch)
		ranges, err = n.generator.Take(context.Background(), ranges, batch)
		if errors.Is(err, leaf.ErrExhausted) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			return ranges, err
		}
		count -= batch
	}
	return ranges, nil
}

// A node is a running node. Its methods are for one goroutine.
type node struct {
	t       testing.TB
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	log     *os.File
	all     *drivertest.Ranges // gets everything that any node of the test issued
	stopped bool
}

// startNode starts a node that ends with the test.
func startNode(t testing.TB, all *drivertest.Ranges, c nodeConfig) *node {
	t.Helper()
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, cmd: exec.Command(self), all: all}
	if n.log, err = os.CreateTemp(t.TempDir(), "node-*.log"); err != nil {
		t.Fatal(err)
	}
	n.cmd.Env = append(os.Environ(), nodeVariable+"="+string(config))
	n.cmd.Stderr = n.log
	out, err := n.cmd.StdoutPipe()
	if err == nil {
		n.in, err = n.cmd.StdinPipe()
	}
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	n.out = json.NewDecoder(out)
	t.Cleanup(n.kill)
	return n
}

func (n *node) output() string {
	text, err := os.ReadFile(n.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (n *node) send(line string) {
	n.t.Helper()
	if _, err := io.WriteString(n.in, line+"\n"); err != nil {
		n.t.Fatalf("%v\n%s", err, n.output())
	}
}

// receive returns the answer to the oldest pending command.
func (n *node) receive() (nodeAnswer, error) {
	n.t.Helper()
	var a nodeAnswer
	if err := n.out.Decode(&a); err != nil {
		n.t.Fatalf("%v\n%s", err, n.output())
	}
	n.all.Add(a.Ranges...)
	if a.Err != "" {
		return a, errors.New(a.Err)
	}
	return a, nil
}

// try asks for count IDs.
func (n *node) try(count int) (nodeAnswer, error) {
	n.t.Helper()
	n.send(fmt.Sprintf("take %d", count))
	return n.receive()
}

// take waits for the node to issue, and has it issue count IDs.
func (n *node) take(count int) nodeAnswer {
	n.t.Helper()
	until(n.t, 30*time.Second, "issuing", func() error {
		_, err := n.try(1)
		return err
	})
	a, err := n.try(count - 1)
	if err != nil {
		n.t.Fatalf("%v\n%s", err, n.output())
	}
	return a
}

// skew sets the node's wall clock.
func (n *node) skew(d time.Duration) {
	n.t.Helper()
	n.send("skew " + d.String())
	if _, err := n.receive(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) signal(sig syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil {
		n.t.Fatal(err)
	}
}

// kill ends the node as kill -9 does.
func (n *node) kill() {
	if n.stopped {
		return
	}
	n.stopped = true
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// stop ends the node in good order.
func (n *node) stop() {
	n.t.Helper()
	n.send("stop")
	n.stopped = true
	if err := n.cmd.Wait(); err != nil {
		n.t.Fatalf("%v\n%s", err, n.output())
	}
}

// newRegistry makes an SQLite registry and returns its URL.
func newRegistry(t testing.TB) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "workers.db")
	initWorkers(t, url)
	return url
}

// initWorkers makes the registry at url.
func initWorkers(t testing.TB, url string) {
	t.Helper()
	backend, err := drivers.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	if err := backend.Workers.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// initBoth makes the store at url, with these tags, and its registry.
func initBoth(t testing.TB, url string, tags []segment.Tag) {
	t.Helper()
	backend, err := drivers.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	if err := backend.Tags.Init(t.Context(), tags...); err != nil {
		t.Fatal(err)
	}
	initWorkers(t, url)
}

// checkRanges compares every ID with every other one.
func checkRanges(t testing.TB, all *drivertest.Ranges, want int64) {
	t.Helper()
	if err := all.Check(); err != nil {
		t.Fatal(err)
	}
	if all.Count() < want {
		t.Fatalf("%d IDs were compared, want %d", all.Count(), want)
	}
	t.Logf("%d IDs, no duplicate", all.Count())
}
