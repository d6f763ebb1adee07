package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	loadgen "github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/snowflake"
)

// The times of the leases of these clusters, in a build for the lab.
const (
	leaseHorizon = 8 * time.Second
	leaseAhead   = 2 * time.Second // max_ahead of all layouts
)

// TestLeases has three servers lease their worker IDs from each registry, with IDs of several
// layouts on each of them, while faults strike from a seed. Nothing is issued twice, each
// server's answers ascend, IDs carry the time of their server's clock, and all clients are served
// again in the end. LEAF_SEED replays the faults of a seed; LEAF_REPORT names a folder for
// pictures and results.
func TestLeases(t *testing.T) {
	t.Parallel()
	struck := map[string]bool{}
	for _, kind := range leaseRegistries {
		for _, name := range kind.short {
			struck[name] = true
		}
		if !lab() && kind.short == nil {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			if kind.name != "sqlite" {
				testserver.Long(t)
			}
			t.Parallel()
			c := newLeaseCluster(t, kind.name, kind.start(t), func(version string) []string { return []string{leaseBuild(t, version)} })
			c.run(c.plan(kind.short))
			c.check()
		})
	}
	for _, fault := range leaseFaults {
		if !struck[fault.name] {
			t.Errorf("the short form leaves out %q", fault.name)
		}
	}
}

// plan returns the faults that strike: all that the registry can have in the lab, else some.
func (c *leaseCluster) plan(short []string) (faults []*leaseFault) {
	for i := range leaseFaults {
		fault := &leaseFaults[i]
		switch why := c.reg.hole(c.result.Store, fault); {
		case why != "":
			c.result.Holes[fault.name] = why
		case lab() || slices.Contains(short, fault.name):
			faults = append(faults, fault)
		}
	}
	return faults
}

// A leaseCluster is three servers of time-based IDs on one registry, with their clients.
type leaseCluster struct {
	t       *testing.T
	rng     *rand.Rand
	reg     *leaseRegistry
	result  labcheck.Result
	file    string // the configuration
	program func(version string) []string
	nodes   []*leaseNode
	start   time.Time
	history labcheck.History
	clients []string      // those that must get IDs in the end
	begun   time.Duration // when all clients had been served
	well    time.Duration // when all faults had ended

	mu     sync.Mutex
	events []labcheck.Event
	spares int

	over chan struct{}
	wg   sync.WaitGroup
}

// A leaseNode is one server over all its lives, on one machine: a data directory, a clock and
// ways to the registry.
type leaseNode struct {
	c      *leaseCluster
	name   string
	build  string   // the version of its program
	within []string // a command line that runs the rest elsewhere; may be empty
	args   []string
	data   string
	links  []*proxy
	clock  string // the file that says how far its clock is off
	off    time.Duration
	lives  int
	life   *leaseLife
}

// A leaseLife is one process of a node.
type leaseLife struct {
	*server
	name, resp string
	low, high  atomic.Int64 // how far its clock was off since it began, milliseconds
}

// newLeaseCluster starts a cluster whose nodes run a program: NAME=VALUE of variables, and its
// path.
func newLeaseCluster(t *testing.T, name string, reg *leaseRegistry, program func(version string) []string) *leaseCluster {
	seed, hash := labSeed(t), fnv.New64a()
	hash.Write([]byte(name))
	c := &leaseCluster{t: t, reg: reg, program: program, over: make(chan struct{}), start: time.Now(), rng: rand.New(rand.NewPCG(seed, hash.Sum64()))}
	c.result = labcheck.Result{Test: t.Name(), Seed: seed, Store: name, Scheme: "snowflake, uid", Nemeses: map[string]int{}, Holes: map[string]string{}}
	t.Logf("seed %d", seed)
	t.Cleanup(c.keep)
	for _, version := range builds { // here, and not while a server is away
		program(version)
	}
	c.file = config(t, "leaf.yaml", c.configuration())
	for i := range 3 {
		n := c.newNode(fmt.Sprint("s", i))
		for _, space := range c.spaces() {
			c.clients = append(c.clients, space.name+"@"+n.name)
		}
		c.nodes = append(c.nodes, n)
		c.launch(n)
	}
	if reg.java != nil {
		c.clients = append(c.clients, "java")
		c.wg.Go(func() { reg.java(c) })
	}
	return c
}

// newNode returns a new node.
func (c *leaseCluster) newNode(name string) *leaseNode {
	c.t.Helper()
	dir := c.t.TempDir()
	n := &leaseNode{c: c, name: name, build: builds[0], data: filepath.Join(dir, "data"), clock: filepath.Join(dir, "clock")}
	url := c.reg.url
	if strings.Contains(url, javaPort) {
		c.mu.Lock()
		c.spares++
		url = strings.Replace(url, javaPort, fmt.Sprint(8080+c.spares), 1)
		c.mu.Unlock()
	}
	for _, addr := range c.reg.addrs {
		link := startProxy(c.t, addr, 0)
		n.links = append(n.links, link)
		url = strings.Replace(url, addr, link.addr, 1)
	}
	n.args = []string{"--config", c.file, "--data", n.data, "--workers", url}
	if c.reg.tags {
		n.args = append(n.args, "--store", url)
	}
	return n
}

// A leaseSpace is an ID space, and how one client of each server asks for its IDs.
type leaseSpace struct {
	name, scheme, protocol string
	most                   int // IDs at a time
	layout                 snowflake.Layout
}

// spaces returns those of the cluster. Layouts of seconds have millions of IDs in a range.
func (c *leaseCluster) spaces() (all []leaseSpace) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	uid, _ := snowflake.Preset("uid")
	leafs, _ := snowflake.Preset("leaf")
	wide := snowflake.Layout{Epoch: epoch, Tick: time.Second, TimeBits: 31, WorkerBits: c.reg.bits, SequenceBits: 32 - c.reg.bits}
	all = append(all, leaseSpace{"uid", "uid", "http", 1000, uid})
	if c.reg.once {
		return all
	}
	all = append(all, leaseSpace{"wide", "snowflake", "http", 5_000_000, wide}, leaseSpace{"leaf", "snowflake", "resp", 500, leafs},
		leaseSpace{"coarse", "snowflake", "grpc", 500,
			snowflake.Layout{Epoch: epoch, Tick: 10 * time.Millisecond, TimeBits: 39, WorkerBits: 14, SequenceBits: 10}})
	if c.reg.tags {
		all = append(all, leaseSpace{name: sampleTag, scheme: "segment", protocol: "http", most: 500})
	}
	return all
}

// configuration serves all spaces.
func (c *leaseCluster) configuration() string {
	var b strings.Builder
	fmt.Fprintf(&b, "max_range: 10_000_000\nsegment: {enable: %v, max_stock: 20000}\n", c.reg.tags)
	fmt.Fprintf(&b, "uid: {enable: true, mode: %s, max_ahead: %v}\n", []string{"cached", "default"}[c.rng.IntN(2)], leaseAhead)
	fmt.Fprintf(&b, "snowflake:\n  enable: %v\n  max_ahead: %v\n  clock_tolerance: 3s\n", !c.reg.once, leaseAhead)
	if c.reg.once {
		return b.String()
	}
	b.WriteString("  layouts:\n")
	for _, s := range c.spaces() {
		if l := s.layout; s.name == "wide" || s.name == "coarse" {
			fmt.Fprintf(&b, "    %s: {epoch: %s, tick: %v, time: %d, worker: %d, sequence: %d}\n",
				s.name, l.Epoch.Format(time.RFC3339), l.Tick, l.TimeBits, l.WorkerBits, l.SequenceBits)
		}
	}
	return b.String()
}

// command returns what becomes a node's next process.
func (n *leaseNode) command(resp string) []string {
	line := append(n.within, "env", "LEAFLAB_CLOCK="+n.clock, "LEAFLAB_HORIZON="+leaseHorizon.String())
	line = append(line, n.c.program(n.build)...)
	return append(line, serveArgs(append([]string{"--resp", resp}, n.args...))...)
}

// launch starts the next life of a node, with its clients.
func (c *leaseCluster) launch(n *leaseNode) {
	c.t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		c.t.Fatal(err)
	}
	n.lives++
	resp := fmt.Sprint("127.0.0.1:", port)
	l := &leaseLife{name: fmt.Sprintf("%s.%d", n.name, n.lives), resp: resp}
	n.life = l
	l.low.Store(n.off.Milliseconds())
	l.high.Store(n.off.Milliseconds())
	l.server = serveBy(c.t, n.command(resp)...)
	for _, space := range c.spaces() {
		c.wg.Go(func() { c.client(space.name+"@"+n.name, l, space) })
	}
}

// target returns how clients ask for IDs of a space.
func (l *leaseLife) target(space leaseSpace) loadgen.Target {
	at := func(addr string) loadgen.Server { return loadgen.Server{Addr: addr, Timeout: 3 * time.Second} }
	addr := strings.TrimPrefix(l.url, "http://")
	switch space.protocol {
	case "grpc":
		return loadgen.NewGRPC(at(addr), space.scheme, 1)
	case "resp":
		return &loadgen.RESP{Server: at(l.resp), Scheme: space.scheme}
	}
	return loadgen.V1(at(addr), space.scheme)
}

// client takes IDs from one life of a server.
func (c *leaseCluster) client(name string, l *leaseLife, space leaseSpace) {
	rng := rand.New(rand.NewPCG(c.result.Seed, uint64(len(l.name))))
	conn := l.target(space).Open()
	defer conn.Close()
	for {
		select {
		case <-c.over:
			return
		case <-l.exited:
			return
		case <-time.After(20 * time.Millisecond):
			c.ask(conn, name, l, space, 1+rng.IntN(space.most))
		}
	}
}

// ask makes one call.
func (c *leaseCluster) ask(conn loadgen.Conn, client string, l *leaseLife, space leaseSpace, n int) {
	call := &loadgen.Call{Key: space.name, Count: n}
	begin := time.Now()
	loadgen.Do(context.Background(), conn, []*loadgen.Call{call})
	end := time.Now()
	if call.Err != nil {
		c.history.Fail(labcheck.Failure{Client: client, Begin: begin.Sub(c.start), End: end.Sub(c.start), Err: call.Err})
		if loadgen.Misfit(call.Err) {
			c.history.Wrong(client, call.Err)
		}
		return
	}
	c.history.Add(labcheck.Receipt{Space: space.name, Server: l.name, Client: client, Begin: begin.Sub(c.start), End: end.Sub(c.start),
		ClockBegin: begin.UnixMilli() + l.low.Load(), ClockEnd: end.UnixMilli() + l.high.Load()}, call.IDs.Ranges...)
}

// setClock sets how far a node's clock is off.
func (n *leaseNode) setClock(d time.Duration) error {
	n.off = d
	if l := n.life; l != nil {
		l.low.Store(min(l.low.Load(), d.Milliseconds()))
		l.high.Store(max(l.high.Load(), d.Milliseconds()))
	}
	next := n.clock + ".new"
	return errors.Join(os.WriteFile(next, []byte(d.String()), 0o600), os.Rename(next, n.clock))
}

func (n *leaseNode) signal(sig syscall.Signal) error { return n.life.cmd.Process.Signal(sig) }

// quit ends a node in good order, even while its registry fails.
func (n *leaseNode) quit() {
	err := n.signal(syscall.SIGTERM)
	select {
	case <-n.life.exited:
	case <-time.After(time.Minute):
		err = errors.Join(err, fmt.Errorf("it does not stop:\n%s", n.life.output()))
	}
	if err != nil {
		n.c.t.Errorf("stop %s: %v", n.life.name, err)
	}
}

// run has each fault strike once, and in the lab some of them again, two at a time.
func (c *leaseCluster) run(faults []*leaseFault) {
	c.served(0, "served")
	c.begun = c.elapsed()
	if c.reg.backup != nil {
		if err := c.reg.backup(); err != nil {
			c.t.Fatal(err)
		}
	}
	order := c.rng.Perm(len(faults))
	for _, i := range order {
		c.strike(faults[i])
	}
	for range figure(0, 10) {
		c.strike(faults[c.rng.IntN(len(faults))], faults[c.rng.IntN(len(faults))])
	}
	for _, fault := range faults {
		if c.result.Nemeses[fault.name] == 0 {
			c.result.Holes[fault.name] = noOccasion
		}
	}
	c.well = c.elapsed()
	c.served(c.well, "served again")
	close(c.over)
	c.wg.Wait()
	for _, n := range c.nodes {
		n.quit()
	}
}

// served waits until each client has been served since a time.
func (c *leaseCluster) served(since time.Duration, what string) {
	c.t.Helper()
	until(c.t, 2*time.Minute, what, func() error {
		return c.history.CheckSilence(since, c.elapsed(), time.Hour, c.clients...)
	})
}

func (c *leaseCluster) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

func (c *leaseCluster) elapsed() time.Duration { return time.Since(c.start) }

// strike has faults strike at the same time, each on another server. One that must be alone
// comes first, and one at a time is the registry's.
func (c *leaseCluster) strike(faults ...*leaseFault) {
	var wg sync.WaitGroup
	nodes := c.rng.Perm(len(c.nodes))
	registry := false
	for i, fault := range faults {
		if i > 0 && (fault.alone || faults[0].alone || registry && fault.store) {
			break
		}
		registry = registry || fault.store
		s := &leaseStrike{leaseCluster: c, n: c.nodes[nodes[i]], rng: rand.New(rand.NewPCG(c.rng.Uint64(), c.result.Seed))}
		wg.Go(func() { s.do(fault) })
	}
	wg.Wait()
	time.Sleep(time.Duration(c.rng.Int64N(int64(time.Second))))
}

// check looks at all that the clients received, and saves the result.
func (c *leaseCluster) check() {
	twice, err := c.history.Duplicates(nil)
	errs := []error{err, c.history.Ordered(), c.history.Fits()}
	for _, s := range c.spaces() {
		if s.scheme != "segment" {
			errs = append(errs, c.history.Timely(s.name, timeBound(s.layout)))
		}
	}
	r := c.history.Result(c.begun, c.well)
	r.Served = slices.DeleteFunc(r.Served, func(s labcheck.Served) bool { return !slices.Contains(c.clients, s.Client) })
	r.Silence = slices.MaxFunc(r.Served, func(a, b labcheck.Served) int { return cmp.Compare(a.Silence, b.Silence) }).Silence
	r.Test, r.Seed, r.Store, r.Scheme, r.Nemeses, r.Holes = c.result.Test, c.result.Seed, c.result.Store, c.result.Scheme, c.result.Nemeses, c.result.Holes
	r.Duplicates, r.Took = twice, c.elapsed()
	c.result.Took = r.Took
	if err := errors.Join(errs...); err != nil {
		r.Error = err.Error()
		c.t.Error(err)
	}
	c.t.Logf("%s: %d faults, %d IDs, %d duplicates, longest silence %v, %d of %d calls failed, seed %d",
		r.Store, r.Strikes(), r.IDs, r.Duplicates, r.Silence.Round(time.Millisecond), r.Failed, r.Calls, r.Seed)
	if dir := os.Getenv("LEAF_REPORT"); dir != "" {
		if err := errors.Join(r.Save(dir), c.history.Draw(dir, &r, c.events, c.well)); err != nil {
			c.t.Error(err)
		}
	}
}

// keep saves the server logs and the list of faults of a failed run.
func (c *leaseCluster) keep() {
	if !c.t.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "leaf-leases-"+c.result.Store+"-")
	if err != nil {
		c.t.Error(err)
	}
	for _, n := range c.nodes {
		if err := os.WriteFile(filepath.Join(dir, n.life.name+".log"), []byte(n.life.output()), 0o600); err != nil {
			c.t.Error(err)
		}
	}
	if err := errors.Join(c.history.Draw(dir, &c.result, c.events, c.well), c.result.SaveUnfinished(os.Getenv("LEAF_REPORT"), &c.history)); err != nil {
		c.t.Error(err)
	}
	var b strings.Builder
	for _, e := range c.events {
		fmt.Fprintf(&b, "%8v for %8v %s\n", e.Begin.Round(time.Millisecond), (e.End - e.Begin).Round(time.Millisecond), e)
	}
	c.t.Logf("kept in %s; replay: LEAF_SEED=%d go test -run '%s$' .\n%s", dir, c.result.Seed, c.result.Test, &b)
}

// timeBound is how far the time in an ID may be off its server's clock. A server continues from its
// cursor after a pause.
func timeBound(l snowflake.Layout) labcheck.TimeBound {
	return labcheck.TimeBound{
		Ticks: func(id int64) (start, end int64) {
			p, err := l.Decode(id)
			if err != nil {
				return -1, -1
			}
			return p.Time.UnixMilli(), p.Time.Add(l.Tick).UnixMilli()
		},
		Ahead:  leaseAhead.Milliseconds() + 50,
		Behind: (2*leaseHorizon + 10*time.Second).Milliseconds(),
	}
}
