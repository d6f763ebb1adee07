package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/testserver"
)

// TestMembers runs three servers that keep their counters themselves, on hosts of their own where the
// system has them, and has every fault of a cluster strike them under load. No ID comes twice, IDs
// after a restart lie above all earlier ones, and the stock of a server outlasts the loss of the
// others. In the lab the faults come again in random order until 10^9 IDs have been compared.
func TestMembers(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	m := newMemberSet(t, memberConfig, true)
	seed := labSeed(t)
	rng := rand.New(rand.NewPCG(seed, 32))
	faults := slices.Concat(memberFaults, slowFaults)
	for round := 0; ; round++ {
		for _, f := range faults {
			m.suffer(f)
		}
		if ids, _ := m.history.Count(); !lab() || ids >= 1e9 {
			break
		}
		rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	}
	m.report(seed)
	m.check()
}

// suffer has a fault strike, if the system has the means, and waits until its traces are gone.
func (m *memberSet) suffer(f memberFault) {
	m.t.Helper()
	if f.missing != nil {
		if err := f.missing(m); err != nil {
			m.t.Logf("left out: %s: %v", f.name, err)
			m.holes[f.name] = err.Error()
			return
		}
	}
	begin := time.Now()
	f.strike(m)
	m.await(m.servers...)
	m.struck(f.name, begin)
	m.t.Logf("%v: %s took %v", time.Since(m.begin).Round(time.Second), f.name, time.Since(begin).Round(time.Millisecond))
}

// A memberSet is the servers of one cluster with their clients.
type memberSet struct {
	t       *testing.T
	config  string // the configuration file
	hungry  bool   // each server has a client, and a disk of its own where the system has them
	certs   string // the folder of certificates; "": all are on loopback
	lan     *host  // the switch between the servers' hosts; nil: no switch
	servers []*memberServer
	count   int // of servers that there have been
	begin   time.Time
	events  []labcheck.Event  // the faults
	holes   map[string]string // why others did not strike

	history labcheck.History
	highest atomic.Int64 // of the IDs received so far
	quiet   sync.RWMutex // locked: the clients pause
	over    chan struct{}
	wg      sync.WaitGroup
}

// A memberServer is a server over all its lives.
type memberServer struct {
	name  string
	host  *host // nil: this machine
	port  string
	addr  string // for its peers
	data  string
	disk  *disk  // of the member's log and database; nil: this machine's
	peers string // overrides the list of all
	lives int
	now   atomic.Pointer[server]
}

var memberConfig = labConfig + "public_read: true\n"

// newMemberSet returns three servers. With hungry each has a client that takes all kinds of batches.
func newMemberSet(t *testing.T, text string, hungry bool) *memberSet {
	m := &memberSet{t: t, config: config(t, "leaf.yaml", text), hungry: hungry, begin: time.Now(), holes: map[string]string{}, over: make(chan struct{})}
	if canHost() {
		m.lan, m.certs = newHost(t), filepath.Join(t.TempDir(), "certs")
		m.must(m.lan.ip(true, "link add lan type bridge"), m.lan.ip(true, "link set lan up"))
	}
	t.Cleanup(m.finish)
	first := m.newServer()
	m.servers = []*memberServer{first}
	m.leaf(first, "cluster", "init", first.addr, "--data", first.data)
	m.launch(first)
	for range 2 {
		m.join(m.newServer())
	}
	m.await(m.servers...)
	return m
}

func (m *memberSet) must(errs ...error) {
	m.t.Helper()
	if err := errors.Join(errs...); err != nil {
		m.t.Fatal(err)
	}
}

// lanAddr returns the address of a host on the switch, which nobody else reaches.
func lanAddr(i int) string { return fmt.Sprint("192.0.2.", i+1) }

// newServer returns a server that has not started, and may begin its client.
func (m *memberSet) newServer() *memberServer {
	m.t.Helper()
	port, err := testserver.FreePort()
	m.must(err)
	s := &memberServer{name: fmt.Sprint("s", m.count), port: fmt.Sprint(port), data: filepath.Join(m.t.TempDir(), "data")}
	s.addr = net.JoinHostPort("127.0.0.1", s.port)
	if m.hungry && canMountDisks() {
		s.disk = newDisk(m.t)
	}
	if m.lan != nil {
		s.host, s.addr = newHost(m.t), net.JoinHostPort(lanAddr(m.count), s.port)
		pid := strings.Split(s.host.inside[1], "/")[2]
		m.must(m.lan.ip(true, "link add "+s.plug()+" type veth peer name lan netns "+pid), m.lan.ip(true, "link set "+s.plug()+" up"),
			s.host.ip(true, "addr add "+lanAddr(m.count)+"/24 dev lan"), s.host.ip(true, "link set lan up"), m.plugIn(s))
		leafCommand(m.t, "cluster", "certs", lanAddr(m.count), "--dir", m.certs)
	}
	m.count++
	if m.hungry {
		m.wg.Go(func() { m.client(s) })
	}
	return s
}

// plug is the switch's end of a server's cable.
func (s *memberServer) plug() string { return "p" + s.port }

func (m *memberSet) plugIn(s *memberServer) error {
	return m.lan.ip(true, "link set "+s.plug()+" master lan")
}

// unplug has all packets between a server and its peers vanish.
func (m *memberSet) unplug(s *memberServer) error {
	return m.lan.ip(true, "link set "+s.plug()+" nomaster")
}

// line returns a command line for a server's host, with its certificate.
func (m *memberSet) line(s *memberServer, args ...string) []string {
	line := append([]string{leafBinary}, args...)
	if s.host == nil {
		return line
	}
	cert := filepath.Join(m.certs, strings.TrimSuffix(s.addr, ":"+s.port))
	return append(append(s.host.inside, line...), "--cluster-ca", filepath.Join(m.certs, "ca.pem"), "--cluster-cert", cert+".pem", "--cluster-key", cert+"-key.pem")
}

// tryLeaf runs a command on a server's host.
func (m *memberSet) tryLeaf(s *memberServer, args ...string) (string, error) {
	line := m.line(s, args...)
	cmd := exec.CommandContext(m.t.Context(), line[0], line[1:]...)
	cmd.Dir = m.t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// leaf is tryLeaf, again until the members have found each other: that takes five seconds.
func (m *memberSet) leaf(s *memberServer, args ...string) (out string) {
	m.t.Helper()
	until(m.t, 2*time.Minute, strings.Join(args, " "), func() (err error) {
		if out, err = m.tryLeaf(s, args...); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	return out
}

// addrs are those of all servers.
func (m *memberSet) addrs() string {
	var all []string
	for _, s := range m.servers {
		all = append(all, s.addr)
	}
	return strings.Join(all, ",")
}

// serveLine returns the command line of a server.
func (m *memberSet) serveLine(s *memberServer) []string {
	listen := "127.0.0.1:0"
	if s.host != nil {
		listen = s.host.addr + ":0"
	}
	peers := s.peers
	if peers == "" {
		peers = m.addrs()
	}
	return m.line(s, "serve", "--listen", listen, "--config", m.config, "--data", s.data, "--cluster", peers, "--cluster-address", s.addr)
}

// launch starts servers at once.
func (m *memberSet) launch(servers ...*memberServer) {
	m.t.Helper()
	var all []*server
	for _, s := range servers {
		m.must(s.useDisk())
		s.lives++
		all = append(all, launch(m.t, m.serveLine(s)...))
	}
	for i, s := range servers {
		all[i].awaitListening()
		s.now.Store(all[i])
	}
}

// join adds a server to the cluster, and starts it.
func (m *memberSet) join(s *memberServer) {
	m.t.Helper()
	m.leaf(m.servers[0], "cluster", "add", s.addr, "--cluster", m.addrs())
	m.servers = append(m.servers, s)
	m.launch(s)
	until(m.t, 2*time.Minute, "a vote of "+s.addr, func() error {
		if role := m.roles()[s.addr]; role != "follower" && role != "leader" {
			return fmt.Errorf("it is %q", role)
		}
		return nil
	})
}

// roles returns the role of each member, by address.
func (m *memberSet) roles() map[string]string {
	m.t.Helper()
	roles := map[string]string{}
	out := m.leaf(m.servers[0], "cluster", "status", "--cluster", m.addrs())
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 3 {
			roles[fields[1]] = fields[2]
		}
	}
	return roles
}

// leader returns the leader and the other servers.
func (m *memberSet) leader() (leader *memberServer, others []*memberServer) {
	m.t.Helper()
	until(m.t, time.Minute, "a leader", func() error {
		roles := m.roles()
		leader, others = nil, nil
		for _, s := range m.servers {
			if roles[s.addr] == "leader" {
				leader = s
			} else {
				others = append(others, s)
			}
		}
		if leader == nil {
			return fmt.Errorf("the members are %v", roles)
		}
		return nil
	})
	return leader, others
}

// client takes IDs from a server, again and again.
func (m *memberSet) client(s *memberServer) {
	over := m.over
	rng := rand.New(rand.NewPCG(uint64(m.begin.UnixNano()), uint64(len(s.port))))
	for {
		select {
		case <-over:
			return
		case <-time.After(10 * time.Millisecond):
		}
		m.quiet.RLock()
		if s.now.Load() != nil {
			_, _ = m.take(s, manyOrFew(rng, figure(10_000, 500_000)))
		}
		m.quiet.RUnlock()
	}
}

// take makes one call for IDs.
func (m *memberSet) take(s *memberServer, n int) ([]leaf.Range, error) {
	life := s.now.Load()
	r := labcheck.Receipt{Space: sampleTag, Server: fmt.Sprint(s.name, "-", life.cmd.Process.Pid), Client: s.name, Begin: time.Since(m.begin)}
	ranges, err := life.takeOf("segment", sampleTag, n)
	if r.End = time.Since(m.begin); err != nil {
		m.history.Fail(labcheck.Failure{Client: r.Client, Calls: 1, Begin: r.Begin, End: r.End, Err: err})
		if errors.Is(err, errMisfit) {
			m.history.Wrong(r.Client, err)
		}
		return nil, err
	}
	m.history.Add(r, ranges...)
	for _, got := range ranges {
		for {
			old := m.highest.Load()
			if got.End <= old || m.highest.CompareAndSwap(old, got.End) {
				break
			}
		}
	}
	return ranges, nil
}

// await returns when servers have allocated again, and how long that took.
func (m *memberSet) await(servers ...*memberServer) time.Duration {
	m.t.Helper()
	begin := time.Now()
	for _, s := range servers {
		until(m.t, 2*time.Minute, "allocation by "+s.name, func() error {
			if err := s.now.Load().running(); err != nil {
				m.t.Fatal(err)
			}
			return m.allocate(s)
		})
	}
	return time.Since(begin)
}

// allocate takes more IDs than a server has in stock.
func (m *memberSet) allocate(s *memberServer) error {
	stock, err := s.stock()
	for n := stock + 1; n > 0 && err == nil; n -= labBatch {
		_, err = m.take(s, min(n, labBatch))
	}
	return err
}

var stockMetric = regexp.MustCompile(`(?m)^leaf_segment_stock (\S+)$`)

// stock returns how many IDs a server has in memory.
func (s *memberServer) stock() (int, error) {
	body, err := get(s.now.Load().url + "/metrics")
	if err != nil {
		return 0, err
	}
	match := stockMetric.FindStringSubmatch(body)
	if match == nil {
		return 0, errors.New("no stock in the metrics")
	}
	n, err := strconv.ParseFloat(match[1], 64)
	return int(n), err
}

func (m *memberSet) finish() {
	if m.over != nil {
		close(m.over)
		m.wg.Wait()
		m.over = nil
	}
}

// found ends the clients, and looks at all that they received.
func (m *memberSet) found() error {
	m.finish()
	return errors.Join(m.history.Unique(), m.history.Ordered(), m.history.Fits())
}

func (m *memberSet) check() {
	m.must(m.found())
	ids, failed := m.history.Count()
	m.t.Logf("%d faults, %d answered calls, %d IDs, no duplicate, %d calls failed, %v", len(m.events), m.history.Answered(), ids, failed, time.Since(m.begin).Round(time.Second))
}

// struck notes a past fault.
func (m *memberSet) struck(name string, begin time.Time) {
	m.events = append(m.events, labcheck.Event{Name: name, Begin: begin.Sub(m.begin), End: time.Since(m.begin)})
}

// report saves the result.
func (m *memberSet) report(seed uint64) {
	dir := os.Getenv("LEAF_REPORT")
	if dir == "" {
		return
	}
	err, took := m.found(), time.Since(m.begin)
	r := m.history.Result(0, took)
	r.Duplicates, _ = m.history.Duplicates(nil)
	if err != nil {
		r.Error = err.Error()
	}
	r.Test, r.Seed, r.Store, r.Scheme, r.Took, r.Nemeses, r.Holes = m.t.Name(), seed, "cluster", "members", took, map[string]int{}, m.holes
	for _, e := range m.events {
		r.Nemeses[e.Name]++
	}
	m.must(r.Save(dir), m.history.Draw(dir, &r, m.events, took))
}
