package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	"github.com/leaf-id/leaf/segment"
)

// A labStore is a store that three servers share, and what can happen to it.
type labStore struct {
	url           string
	addr          string // HOST:PORT in url, for a proxy; empty: it has none
	freeze, thaw  func() error
	stop, restart func() error
}

var labStores = map[string]func(t *testing.T) labStore{
	"sqlite": func(t *testing.T) labStore {
		return labStore{url: "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")}
	},
	"mariadb": func(t *testing.T) labStore {
		s := testserver.MariaDB(t, nil)
		return labStore{s.URL(s.NewDatabase(t)), fmt.Sprint("127.0.0.1:", s.Port), s.Pause, s.Resume, s.Kill, s.Start}
	},
	"postgres": func(t *testing.T) labStore {
		s := testserver.Postgres(t, nil)
		return labStore{s.URL(s.NewDatabase(t)), fmt.Sprint("127.0.0.1:", s.Port), s.Pause, s.Resume, s.Kill, s.Start}
	},
	"etcd": func(t *testing.T) labStore {
		c := testserver.Etcd(t, nil)
		on := func(do func(int) error) func() error { return func() error { return do(0) } }
		return labStore{c.URL("lab"), c.Endpoints()[0], on(c.Pause), on(c.Resume), on(c.Kill), on(c.Restart)}
	},
	"redis": func(t *testing.T) labStore {
		s := testserver.Redis(t, nil)
		return labStore{s.URL(), s.Addr(), s.Pause, s.Resume, s.Kill, s.Start}
	},
	"zookeeper": func(t *testing.T) labStore {
		s := testserver.ZooKeeper(t)
		return labStore{"zookeeper://" + s.Addr(), s.Addr(), s.Pause, s.Resume, s.Kill, s.Start}
	},
}

// TestCluster has three servers share each store, with clients of three protocols on each of
// them, while faults strike from a seed. Nothing is issued twice, each server's answers
// ascend, and all clients are served again in the end. LEAF_SEED replays the faults of a seed;
// LEAF_REPORT names a folder for pictures; what a failed run leaves is kept.
func TestCluster(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LEAF_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for name, start := range labStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, name, seed, start(t))
			c.run()
			c.check()
		})
	}
}

// A cluster is three servers on one store, with their clients.
type cluster struct {
	t       *testing.T
	name    string
	seed    uint64
	rng     *rand.Rand
	store   labStore
	members []*member
	start   time.Time
	history labcheck.History
	events  []labcheck.Event
	clients []string
	well    time.Duration // when all faults had ended

	over chan struct{}
	wg   sync.WaitGroup
}

// A member is one server of a cluster, over all its lives.
type member struct {
	args  []string
	link  *proxy // to the store; nil: none
	lives int
	now   atomic.Pointer[life]
}

// A life is one process.
type life struct {
	*server
	name, resp string
}

func newCluster(t *testing.T, name string, seed uint64, store labStore) *cluster {
	c := &cluster{t: t, name: name, seed: seed, store: store, over: make(chan struct{}), start: time.Now()}
	c.rng = rand.New(rand.NewPCG(seed, uint64(len(name))))
	initBoth(t, store.url, []segment.Tag{{Name: "order", MaxID: 1, Step: 100}})
	file := config(t, "leaf.yaml", "segment: {max_stock: 20000}\n")
	for i := range 3 {
		m, url := &member{}, store.url
		if store.addr != "" {
			m.link = startProxy(t, store.addr, 0)
			url = strings.Replace(url, store.addr, m.link.addr, 1)
		}
		m.args = []string{"--config", file, "--store", url, "--data", filepath.Join(t.TempDir(), "data")}
		c.members = append(c.members, m)
		c.launch(m, i)
		for _, protocol := range []string{"http", "grpc", "resp"} {
			c.client(fmt.Sprintf("%s@%d", protocol, i), protocol, m)
		}
	}
	return c
}

// launch starts the next life of a member.
func (c *cluster) launch(m *member, i int) {
	c.t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		c.t.Fatal(err)
	}
	m.lives++
	resp := fmt.Sprint("127.0.0.1:", port)
	s := serve(c.t, append([]string{"--resp", resp}, m.args...)...)
	m.now.Store(&life{server: s, name: fmt.Sprintf("s%d.%d", i, m.lives), resp: resp})
}

// target returns how a protocol reaches one life of a server.
func (l *life) target(protocol string) loadgen.Target {
	at := func(addr string) loadgen.Server { return loadgen.Server{Addr: addr, Timeout: 3 * time.Second} }
	addr := strings.TrimPrefix(l.url, "http://")
	switch protocol {
	case "grpc":
		return loadgen.NewGRPC(at(addr), "segment", 1)
	case "resp":
		return &loadgen.RESP{Server: at(l.resp), Scheme: "segment"}
	}
	return loadgen.V1(at(addr), "segment")
}

// client takes IDs from whichever life a member is in.
func (c *cluster) client(name, protocol string, m *member) {
	c.clients = append(c.clients, name)
	rng := rand.New(rand.NewPCG(c.seed, uint64(len(c.clients))))
	c.wg.Go(func() {
		for !c.ended() {
			l := m.now.Load()
			conn := l.target(protocol).Open()
			for m.now.Load() == l && !c.ended() {
				c.ask(conn, name, l.name, 1+rng.IntN(500))
				time.Sleep(5 * time.Millisecond)
			}
			conn.Close()
		}
	})
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
	call := &loadgen.Call{Key: "order", Count: n}
	begin := c.elapsed()
	conn.Do(context.Background(), []*loadgen.Call{call})
	if call.Err != nil {
		c.history.Fail(labcheck.Failure{Client: client, Begin: begin, End: c.elapsed(), Err: call.Err})
		return
	}
	c.history.Add(labcheck.Receipt{Space: "order", Server: server, Client: client, Begin: begin, End: c.elapsed()}, call.IDs.Ranges...)
}

// run has one fault after the other strike, some of them at the same time.
func (c *cluster) run() {
	c.pause(time.Second)
	for range figure(8, 60) {
		c.strike()
		c.pause(time.Second)
	}
	c.well = c.elapsed()
	until(c.t, time.Minute, "served again", func() error {
		return c.history.CheckSilence(c.well, c.elapsed(), time.Hour, c.clients...)
	})
	close(c.over)
	c.wg.Wait()
	for _, m := range c.members {
		m.now.Load().stop()
	}
}

// pause waits for a random time, at most.
func (c *cluster) pause(most time.Duration) { time.Sleep(time.Duration(c.rng.Int64N(int64(most)))) }

// A labFault is one thing that goes wrong, and is right again when do returns.
type labFault struct {
	name string
	do   func(c *cluster, m *member, i int) error
}

var labFaults = []labFault{
	{"kill -9, restart", func(c *cluster, m *member, i int) error {
		m.now.Load().kill()
		c.pause(500 * time.Millisecond)
		c.launch(m, i)
		return nil
	}},
	{"stop, restart", func(c *cluster, m *member, i int) error {
		m.now.Load().stop()
		c.launch(m, i)
		return nil
	}},
	{"kill -9, restart with an empty disk", func(c *cluster, m *member, i int) error {
		m.now.Load().kill()
		err := os.RemoveAll(m.args[len(m.args)-1])
		c.launch(m, i)
		return err
	}},
	{"SIGSTOP, SIGCONT", func(c *cluster, m *member, _ int) error {
		process := m.now.Load().cmd.Process
		return c.during(func() error { return process.Signal(syscall.SIGSTOP) }, func() error { return process.Signal(syscall.SIGCONT) })
	}},
	{"connections to the store cut", onLink(func(c *cluster, p *proxy) error {
		return c.during(func() error { p.cut(); return nil }, func() error { p.mend(); return nil })
	})},
	{"answers of the store dropped", onLink(func(c *cluster, p *proxy) error {
		p.mute.Store(true)
		c.pause(2 * time.Second)
		p.cut() // the answers that are missing never come
		p.mute.Store(false)
		p.mend()
		return nil
	})},
	{"store frozen", func(c *cluster, _ *member, _ int) error { return c.during(c.store.freeze, c.store.thaw) }},
	{"store killed, restarted", func(c *cluster, _ *member, _ int) error { return c.during(c.store.stop, c.store.restart) }},
}

// onLink is a fault of a server's connections to its store.
func onLink(do func(*cluster, *proxy) error) func(*cluster, *member, int) error {
	return func(c *cluster, m *member, _ int) error {
		if m.link == nil {
			return nil
		}
		return do(c, m.link)
	}
}

func (c *cluster) during(do, undo func() error) error {
	if do == nil {
		return nil
	}
	err := do()
	c.pause(2 * time.Second)
	return errors.Join(err, undo())
}

// strike has one fault strike one server, or the store.
func (c *cluster) strike() {
	c.t.Helper()
	i, fault := c.rng.IntN(len(c.members)), labFaults[c.rng.IntN(len(labFaults))]
	e := labcheck.Event{Name: fmt.Sprintf("s%d: %s", i, fault.name), Begin: c.elapsed()}
	if err := fault.do(c, c.members[i], i); err != nil {
		c.t.Errorf("%s: %v", e.Name, err)
	}
	e.End = c.elapsed()
	c.events = append(c.events, e)
}

// check looks at all that the clients received, and writes the report.
func (c *cluster) check() {
	err := errors.Join(c.history.Unique(), c.history.Ordered())
	ids, failed := c.history.Count()
	var silence time.Duration
	for _, r := range c.history.Clients(0, c.well) {
		silence = max(silence, r.Silence)
	}
	c.t.Logf("| %s | %d | %d | %v | %d | seed %d |", c.name, len(c.events), ids, silence.Round(time.Millisecond), failed, c.seed)
	dir := os.Getenv("LEAF_REPORT")
	if err != nil {
		c.t.Errorf("%v\nreplay: LEAF_SEED=%d go test -run 'Cluster/%s' .", err, c.seed, c.name)
		dir, _ = os.MkdirTemp("", "leaf-lab-"+c.name+"-")
		c.t.Logf("kept in %s", dir)
		for _, m := range c.members {
			l := m.now.Load()
			_ = os.WriteFile(filepath.Join(dir, l.name+".log"), []byte(l.output()), 0o600)
		}
	}
	if dir != "" {
		picture := c.history.Picture(c.name, c.events, c.well)
		if err := os.WriteFile(filepath.Join(dir, c.name+".svg"), []byte(picture), 0o600); err != nil {
			c.t.Error(err)
		}
	}
}
