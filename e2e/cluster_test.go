package e2e

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	loadgen "github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
)

// TestCluster runs three servers on each store, with clients of six protocols, while every nemesis
// that fits the store strikes it, some at the same time, from a seed. No ID comes twice, each
// server's answers ascend, all clients get IDs again in the end, and a crash loses no more than
// allowed. LEAF_SEED replays the faults of a seed; LEAF_REPORT names a folder for pictures and
// results; a failed run keeps its files.
func TestCluster(t *testing.T) {
	for name, start := range labStores {
		t.Run(name, func(t *testing.T) {
			if name != "sqlite" && name != "mariadb" && name != "nats" {
				testserver.Long(t)
			}
			t.Parallel()
			c := newCluster(t, name, start, leafBinary)
			c.run()
			c.checkLoss()
			c.check()
		})
	}
}

// labSeed returns the seed of this run.
func labSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LEAF_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// A cluster is servers on one store, three as a rule, with their clients.
type cluster struct {
	t       *testing.T
	rng     *rand.Rand
	store   *labStore
	program []string // the command line before serve
	members []*member
	start   time.Time
	history labcheck.History
	events  []labcheck.Event
	result  labcheck.Result
	clients []string
	limits  []labcheck.Limit
	well    time.Duration // when all faults had ended

	over    chan struct{}
	wg      sync.WaitGroup
	closed  []func()     // ends what clients hold
	finish  func()       // ends the clients
	allowed atomic.Int64 // calls that the crowd may make
}

// labTags are the tags, with their steps.
var labTags = map[string]int{labTag: 100, "short": 7, "long": 5000}

const (
	labTag   = "order"
	labStock = 2_000_000         // max_stock: room for the largest answer
	labJump  = 1_000_000_000_000 // regression_jump: more than a fail-over loses
	labBatch = 1_000_000         // the most IDs that a server gives at once
	raised   = 1000 * labJump    // how far counters rise after a restore: more than any backup lacks
)

var labConfig = fmt.Sprintf("segment: {max_stock: %d, regression_jump: %d}\nsnowflake: {enable: false}\n", labStock, labJump)

func newCluster(t *testing.T, name string, start func(*testing.T) *labStore, program ...string) *cluster {
	c := newMembers(t, name, start, program, func(c *cluster) {
		for tag, step := range labTags {
			leafCommand(t, "tag", "create", tag, "--step", fmt.Sprint(step), "--store", c.store.admin)
		}
	})
	for range 3 {
		c.join()
	}
	for _, m := range c.members {
		for _, protocol := range []string{"api", "v1", "grpc", "grpc-port", "resp"} {
			c.client(protocol, m)
		}
		c.sdk(m)
	}
	return c
}

// clusters bounds those that run at a time. Two cores serve no more of them, and a cluster that
// gets no time answers nobody within the time-outs.
var clusters = make(chan struct{}, 3)

// newMembers returns a cluster without members, on a new store with some tags.
func newMembers(t *testing.T, name string, start func(*testing.T) *labStore, program []string, createTags func(*cluster)) *cluster {
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
	seed, hash := labSeed(t), fnv.New64a()
	hash.Write([]byte(name))
	c := &cluster{t: t, store: start(t), program: program, over: make(chan struct{}), start: time.Now(), rng: rand.New(rand.NewPCG(seed, hash.Sum64()))}
	c.result = labcheck.Result{Test: t.Name(), Seed: seed, Store: name, Scheme: "segment", Nemeses: map[string]int{}, Holes: map[string]string{}}
	c.finish = sync.OnceFunc(func() {
		close(c.over)
		c.wg.Wait()
		for _, end := range c.closed {
			end()
		}
	})
	leafCommand(t, "init", "--store", c.store.admin)
	createTags(c)
	if c.store.backup != nil {
		c.must("back up", c.store.backup())
	}
	t.Cleanup(func() {
		c.finish()
		if t.Failed() {
			c.keep()
		}
	})
	return c
}

// join adds a server on the store, and starts it.
func (c *cluster) join() { c.joinAt(c.store.url, c.store.addrs...) }

// joinAt adds a server on a store with these addresses in its URL, to which a proxy each leads.
func (c *cluster) joinAt(url string, addrs ...string) {
	c.t.Helper()
	m := &member{id: len(c.members), host: c.newHost(), data: filepath.Join(c.t.TempDir(), "data"), front: startProxy(c.t, "", 0)}
	for _, addr := range addrs {
		link := startProxyAt(c.t, m.host.peer, addr, 0)
		m.links = append(m.links, link)
		url = strings.Replace(url, addr, link.addr, 1)
	}
	m.args = []string{"--config", c.config(), "--store", url, "--data", m.data}
	c.members = append(c.members, m)
	c.launch(m)
}

// config returns the name of the members' configuration file.
func (c *cluster) config() string { return config(c.t, "leaf.yaml", labConfig) }

// must fails the test with err.
func (c *cluster) must(what string, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// A member is one server of a cluster, over all its lives.
type member struct {
	id    int
	host  *host
	args  []string
	data  string
	links []*proxy // to the store; empty: no proxy reaches it
	front *proxy   // to the server, for programs with the SDK
	lives int
	now   atomic.Pointer[life]

	mu    sync.Mutex
	since []lifeSpan // of all lives
}

// A life is one process.
type life struct {
	*server
	name, resp, grpc string
}

// newHost returns a host for a server: this machine if the server cannot have its own.
func (c *cluster) newHost() *host {
	if hosted(c.store) != "" {
		return &host{addr: "127.0.0.1", peer: "127.0.0.1"}
	}
	return newHost(c.t)
}

// launch starts the next life of a member.
func (c *cluster) launch(m *member) {
	c.t.Helper()
	port, err := testserver.FreePort()
	c.must("launch", err)
	m.lives++
	resp := fmt.Sprint(m.host.addr, ":", port)
	args := append([]string{"serve", "--listen", m.host.addr + ":0", "--resp", resp, "--grpc", m.host.addr + ":0"}, m.args...)
	s := serveBy(c.t, slices.Concat(m.host.inside, c.program, args)...)
	addr := strings.TrimPrefix(s.url, "http://")
	l := &life{server: s, name: fmt.Sprintf("s%d.%d", m.id, m.lives), resp: resp, grpc: portAddress(c.t, s, "grpc")}
	m.begin(l)
	m.front.target.Store(&addr)
	m.now.Store(l)
}

func (c *cluster) launchAll() {
	for _, m := range c.members {
		c.launch(m)
	}
}

// raise raises the counters, as after a restore.
func (c *cluster) raise() {
	leafCommand(c.t, "tag", "raise", "--all", "--by", fmt.Sprint(int64(raised)), "--store", c.store.admin)
}

// quit ends a member in good order, even while the store fails.
func (m *member) quit() error {
	l := m.now.Load()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-l.exited:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("%s does not stop:\n%s", l.name, l.output())
	}
}

// target returns how a protocol reaches one life of a server.
func (l *life) target(protocol string) loadgen.Target {
	at := func(addr string) loadgen.Server { return loadgen.Server{Addr: addr, Timeout: 3 * time.Second} }
	addr := strings.TrimPrefix(l.url, "http://")
	switch protocol {
	case "grpc":
		return loadgen.NewGRPC(at(addr), "segment", 1)
	case "grpc-port":
		return loadgen.NewGRPC(at(l.grpc), "segment", 1)
	case "resp":
		return &loadgen.RESP{Server: at(l.resp), Scheme: "segment"}
	case "api":
		return loadgen.Routes(at(addr), "segment")
	}
	return loadgen.V1(at(addr), "segment")
}

// protocolMost bounds an answer of protocols that do not give ranges.
var protocolMost = map[string]int{"api": 1000, "resp": 1000}

// client takes IDs from whichever life a member is in.
func (c *cluster) client(protocol string, m *member) {
	name := fmt.Sprintf("%s@%d", protocol, m.id)
	most := c.store.most
	if limit := protocolMost[protocol]; limit > 0 {
		most = min(most, limit)
	}
	c.loop(name, func(rng *rand.Rand) {
		l := m.now.Load()
		conn := l.target(protocol).Open()
		defer conn.Close()
		for m.now.Load() == l && !c.ended() {
			begin := c.elapsed()
			c.ask(conn, name, l.name, manyOrFew(rng, most))
			c.rest(begin)
		}
	})
}

// rest has a client rest after a call as long as that took, or longer: a busy machine gets fewer
// calls.
func (c *cluster) rest(begin time.Duration) {
	time.Sleep(max(c.elapsed()-begin, figure(25*time.Millisecond, 5*time.Millisecond)))
}

// loop begins a client, which does one thing again and again.
func (c *cluster) loop(name string, do func(rng *rand.Rand)) {
	c.clients = append(c.clients, name)
	rng := rand.New(rand.NewPCG(c.result.Seed, uint64(len(c.clients))))
	c.wg.Go(func() {
		for !c.ended() {
			do(rng)
		}
	})
}

// manyOrFew returns a number from 1 to most, of each order of magnitude as often.
func manyOrFew(rng *rand.Rand, most int) int {
	return max(1, int(math.Exp(rng.Float64()*math.Log(float64(most)))))
}

func (c *cluster) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

func (c *cluster) elapsed() time.Duration { return time.Since(c.start) }

// ask makes one call.
func (c *cluster) ask(conn loadgen.Conn, client, server string, n int) {
	call := &loadgen.Call{Key: labTag, Count: n}
	begin := c.elapsed()
	loadgen.Do(context.Background(), conn, []*loadgen.Call{call})
	c.note(labcheck.Receipt{Space: labTag, Server: server, Client: client, Begin: begin}, &call.IDs, call.Err)
}

// note records the result of a call.
func (c *cluster) note(r labcheck.Receipt, ids *loadgen.IDs, err error) {
	r.End = c.elapsed()
	if err != nil {
		c.fail(r, 1, err)
		return
	}
	r.Unordered = c.store.unordered
	c.history.Add(r, ids.Ranges...)
}

// fail records calls that brought nothing, or not what they asked for.
func (c *cluster) fail(r labcheck.Receipt, calls int, err error) {
	c.history.Fail(labcheck.Failure{Client: r.Client, Calls: calls, Begin: r.Begin, End: r.End, Err: err})
	if loadgen.Misfit(err) {
		c.history.Wrong(r.Client, err)
	}
}

// run has one bout of faults after the other, until the clients are served again after the
// last one.
func (c *cluster) run() {
	c.awaitServed()
	deck, faults := newDeck(c), figure(8, 60)
	c.crowds()
	for deck.dealt < faults {
		before := deck.dealt
		bout := deck.deal(1 + c.rng.IntN(2))
		c.allowed.Add(int64((deck.dealt - before) * crowdCalls() / faults))
		c.bout(bout)
		c.pause(time.Second)
	}
	c.well = c.elapsed()
	c.awaitServed()
	c.awaitCrowd()
	c.finish()
	for _, n := range deck.fit {
		if c.result.Nemeses[n.name] == 0 {
			c.result.Holes[n.name] = noOccasion
		}
	}
}

// awaitServed returns when every client was served once more.
func (c *cluster) awaitServed() {
	c.t.Helper()
	from := c.elapsed()
	until(c.t, 2*time.Minute, "served", func() error {
		return c.history.CheckSilence(from, c.elapsed(), time.Hour, c.clients...)
	})
}

// pause waits for a random time, at most.
func (c *cluster) pause(most time.Duration) { time.Sleep(time.Duration(c.rng.Int64N(int64(most)))) }

// checkLoss kills all servers once each has issued, and compares the store's grants since their
// start with the issued IDs. It does so twice: the first time a server may notice a fail-over's lost
// writes and lift the counter.
func (c *cluster) checkLoss() {
	for _, m := range c.members {
		c.must("stop", m.quit())
	}
	if c.store.uncounted {
		return
	}
	for range 2 {
		before := c.counter()
		received := c.issueAndKill()
		c.result.Lost = c.counter() - before - received
	}
	c.result.Crashes, c.result.Budget = int64(len(c.members)), int64(len(c.members))*labStock
}

// issueAndKill starts all servers, has each issue, and kills them. It returns how many IDs they
// issued.
func (c *cluster) issueAndKill() (n int64) {
	for _, m := range c.members {
		c.launch(m)
		for range 20 {
			n += c.take(m)
		}
	}
	for _, m := range c.members {
		m.now.Load().kill()
	}
	return n
}

// take has a member issue once, and returns how many IDs.
func (c *cluster) take(m *member) (n int64) {
	l := m.now.Load()
	until(c.t, 2*time.Minute, "served", func() error {
		ranges, err := l.takeOf("segment", labTag, manyOrFew(c.rng, c.store.most))
		for _, r := range ranges {
			n += r.Len()
		}
		if now := c.elapsed(); err == nil {
			c.history.Add(labcheck.Receipt{Space: labTag, Client: "last", Begin: now, End: now}, ranges...)
		}
		return err
	})
	return n
}

// counter returns where the store stands.
func (c *cluster) counter() (n int64) {
	c.t.Helper()
	out := leafCommand(c.t, "tag", "list", "--store", c.store.admin)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == labTag {
			n, _ = strconv.ParseInt(fields[2], 10, 64)
		}
	}
	if n == 0 {
		c.t.Fatalf("the store does not tell the counter:\n%s", out)
	}
	return n
}

// check looks at all that the clients received, and saves the result.
func (c *cluster) check() {
	causes, twice, err := c.history.Explain(c.limits...)
	err = errors.Join(err, c.history.Ordered(), c.history.Fits())
	for _, cause := range causes {
		c.result.Documented += cause.IDs
		c.t.Logf("within a documented limit: %d IDs of %s came again from %s, all in %v: %s", cause.IDs, cause.First, cause.Second, cause.Within, cause.Why)
	}
	if len(c.limits) > 0 && len(causes) == 0 {
		err = errors.Join(err, errors.New("the documented limit did not show"))
	}
	if c.result.Lost < 0 || c.result.Lost > c.result.Budget {
		err = errors.Join(err, fmt.Errorf("%d crashes cost %d IDs, 0 to %d are allowed", c.result.Crashes, c.result.Lost, c.result.Budget))
	}
	r, h := &c.result, c.history.Result(0, c.well, c.clients...)
	r.Answered, r.Clients, r.Ranges = h.Answered, h.Clients, h.Ranges
	r.IDs, r.Calls, r.Failed, r.Silence, r.Served = h.IDs, h.Calls, h.Failed, h.Silence, h.Served
	r.Causes, r.Duplicates, r.Took = causes, twice, c.elapsed()
	if err != nil {
		r.Error = err.Error()
		c.t.Error(err)
	}
	c.t.Logf("%s: %d faults, %d answered calls of %d clients, %d ranges, %d IDs, %d duplicates (and %d as documented), longest silence %v, %d of %d calls failed, %d crashes cost %d IDs, seed %d",
		r.Store, r.Strikes(), r.Answered, r.Clients, r.Ranges, r.IDs, r.Duplicates, r.Documented, r.Silence.Round(time.Millisecond), r.Failed, r.Calls, r.Crashes, r.Lost, r.Seed)
	if dir := os.Getenv("LEAF_REPORT"); dir != "" {
		c.must("report", errors.Join(r.Save(dir), c.history.Draw(dir, &c.result, c.events, c.elapsed())))
	}
}

// keep saves the files of a failed run.
func (c *cluster) keep() {
	dir, err := os.MkdirTemp("", "leaf-lab-"+c.result.Store+"-")
	err = errors.Join(err, c.result.SaveUnfinished(os.Getenv("LEAF_REPORT"), &c.history))
	for _, m := range c.members {
		if l := m.now.Load(); l != nil {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, l.name+".log"), []byte(l.output()), 0o600))
		}
	}
	c.t.Logf("replay: LEAF_SEED=%d go test -run '%s$' . Kept in %s: %v", c.result.Seed, c.result.Test, dir, errors.Join(err, c.history.Draw(dir, &c.result, c.events, c.elapsed())))
}
