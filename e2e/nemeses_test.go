package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
)

// A nemesis is one thing that goes wrong, and is right again after undo.
type nemesis struct {
	name string
	on   string // its target: see below

	// why returns why it cannot strike a store; empty: it can. nil: any.
	why      func(*labStore) string
	do, undo func(*strike) error
}

// The targets of a nemesis. Two strikes at the same time have different targets, or different
// members.
const (
	onServer = "server" // one process
	onLink   = "link"   // a server's connections to its store
	onFront  = "front"  // the connections of programs with the SDK to a server
	onStore  = "store"
	onAll    = "all" // everything: it strikes alone
)

// A strike is a nemesis at work.
type strike struct {
	*cluster
	*nemesis
	m      *member
	before int64 // how often its connections were harmed before
}

// The faults that each store has in its own way, or a reason in its place.
const (
	storeFrozen  = "store frozen"
	storeKilled  = "store killed, restarted"
	readOnly     = "store read-only"
	diskFull     = "the store's disk full"
	failedOver   = "fail-over with lost writes, switch-back"
	fileLinked   = "the store's file under a second name"
	fileMoved    = "the store's file moved away and back"
	fileReplaced = "the store's file replaced by a new store's, and back"
	fileBeside   = "files beside the store's removed"
)

// restored is a nemesis that all stores have in the same way, once they can be restored.
const restored = "restored from an old backup, counters raised"

var nemeses = []nemesis{
	{"kill -9, restart", onServer, nil, kill, relaunch},
	{"stop, restart", onServer, nil, func(s *strike) error { return s.m.quit() }, relaunch},
	{"kill -9, restart with an emptied disk", onServer, forgetful, kill, func(s *strike) error { return errors.Join(os.RemoveAll(s.m.data), relaunch(s)) }},
	{"kill -9, restart with an older copy of the disk", onServer, nil, func(s *strike) error {
		return replaceFolder(s.m.data, s.m.data+".copy")
	}, func(s *strike) error {
		return errors.Join(kill(s), replaceFolder(s.m.data+".copy", s.m.data), relaunch(s))
	}},
	{"kill -9, restart with the disk of another server", onServer, forgetful, kill, func(s *strike) error {
		other := s.members[(s.m.id+1)%len(s.members)]
		return errors.Join(replaceFolder(other.data, s.m.data), relaunch(s))
	}},
	{"packets to and from the server vanish", onServer, hosted, func(s *strike) error { return s.m.host.vanish() }, func(s *strike) error { return s.m.host.appear() }},
	{"SIGSTOP, SIGCONT", onServer, nil, signalled(syscall.SIGSTOP), signalled(syscall.SIGCONT)},

	{"connections to the store cut", onLink, linked, each((*proxy).cut), each((*proxy).mend)},
	{"connections to the store half open", onLink, linked, each((*proxy).halve), nothing},
	{"answers of the store dropped", onLink, linked, each(func(p *proxy) { p.mute.Store(true) }), each(unmute)},
	{"the way to the store slow", onLink, linked, delayed(300 * time.Millisecond), delayed(0)},
	{"connections to the store closed late", onLink, linked, each(func(p *proxy) {
		p.linger.Store(int64(2 * time.Second))
		p.cut()
		p.mend()
	}), each(func(p *proxy) { p.linger.Store(0) })},

	{"connections of the SDK cut", onFront, nil, front((*proxy).cut), front((*proxy).mend)},
	{"connections of the SDK half open", onFront, nil, front((*proxy).halve), nothing},
	{"answers to the SDK dropped", onFront, nil, front(func(p *proxy) { p.mute.Store(true) }), front(unmute)},

	ofStore(storeFrozen), ofStore(storeKilled), ofStore(readOnly), ofStore(diskFull), ofStore(failedOver),
	ofStore(fileLinked), ofStore(fileMoved), aloneOf(fileReplaced), ofStore(fileBeside),
	{restored, onAll, func(s *labStore) string { return s.holes[restored] }, restore, func(s *strike) error {
		err := s.store.backup()
		s.launchAll()
		return err
	}},
}

// forgetful has a server forget where the store stood, by its own address for it.
func forgetful(s *labStore) string {
	if s.loss != nil {
		return "after a loss it issues again what was lost, as documented: TestClusterLimits"
	}
	return ""
}

func nothing(*strike) error { return nil }

func kill(s *strike) error { s.m.now.Load().kill(); return nil }

func relaunch(s *strike) error { s.launch(s.m); return nil }

func signalled(sig syscall.Signal) func(*strike) error {
	return func(s *strike) error { return s.m.now.Load().cmd.Process.Signal(sig) }
}

func linked(s *labStore) string { return s.unlinked }

// hosted is why servers have no hosts of their own: from there they reach a store by proxies alone.
func hosted(s *labStore) string {
	if s.unlinked == "" && !canHost() {
		return "not as root, or no iproute2: no network namespace can be made"
	}
	return s.unlinked
}

// each does something to all of a server's ways to its store.
func each(do func(*proxy)) func(*strike) error {
	return func(s *strike) error {
		for _, p := range s.m.links {
			do(p)
		}
		return nil
	}
}

// front does something to the way from the SDK to a server.
func front(do func(*proxy)) func(*strike) error {
	return func(s *strike) error { do(s.m.front); return nil }
}

// unmute ends the connections on which answers are missing: those never come.
func unmute(p *proxy) {
	p.cut()
	p.mute.Store(false)
	p.mend()
}

func delayed(d time.Duration) func(*strike) error {
	return each(func(p *proxy) { p.delay.Store(int64(d)) })
}

// ofStore is what happens to a store in its own way.
func ofStore(name string) nemesis {
	return nemesis{name, onStore, func(s *labStore) string { return s.hole(name) }, func(s *strike) error { return s.store.faults[name].do() }, func(s *strike) error { return s.store.faults[name].undo() }}
}

// aloneOf is ofStore where a server that starts meanwhile would be deceived.
func aloneOf(name string) nemesis {
	n := ofStore(name)
	n.on = onAll
	return n
}

// restore puts the last backup back as docs/backup.md says: with every server stopped, and
// with all counters raised.
func restore(s *strike) error {
	for _, m := range s.members {
		if err := m.quit(); err != nil {
			return err
		}
	}
	if err := s.store.restore(); err != nil {
		return err
	}
	s.raise()
	return nil
}

// A deck deals the nemeses that fit a store, each once before any comes again.
type deck struct {
	*cluster
	fit, rest []*nemesis
	dealt     int
}

func newDeck(c *cluster) *deck {
	d := &deck{cluster: c}
	for i := range nemeses {
		n := &nemeses[i]
		if n.why != nil {
			if why := n.why(c.store); why != "" {
				c.result.Holes[n.name] = why
				continue
			}
		}
		d.fit = append(d.fit, n)
	}
	return d
}

// deal returns strikes that may happen at the same time, at most n.
func (d *deck) deal(n int) (bout []*strike) {
	busy := map[string]bool{}
	for len(bout) < n {
		if len(d.rest) == 0 {
			d.rest = append(d.rest, d.fit...)
			d.rng.Shuffle(len(d.rest), func(i, j int) { d.rest[i], d.rest[j] = d.rest[j], d.rest[i] })
		}
		s := &strike{cluster: d.cluster, nemesis: d.rest[0], m: d.members[d.rng.IntN(len(d.members))]}
		if key := s.key(); busy[key] || len(bout) > 0 && (s.on == onAll || busy[onAll]) {
			break
		}
		busy[s.key()] = true
		d.rest = d.rest[1:]
		d.dealt++
		bout = append(bout, s)
	}
	return bout
}

// key identifies the target of a strike.
func (s *strike) key() string {
	if s.on == onStore || s.on == onAll {
		return s.on
	}
	return fmt.Sprint(s.on, s.m.id)
}

func (s *strike) String() string { return s.event().String() }

func (s *strike) event() (e labcheck.Event) {
	e.Name = s.name
	if s.on != onStore && s.on != onAll {
		e.On = fmt.Sprintf("s%d", s.m.id)
	}
	return e
}

// remembered are faults that harm only servers that have never issued.
var remembered = map[string]bool{failedOver: true, fileReplaced: true}

// proxies are those through which the connections go that a strike strikes.
func (s *strike) proxies() []*proxy {
	switch s.on {
	case onLink:
		return s.m.links
	case onFront:
		return []*proxy{s.m.front}
	}
	return nil
}

// begin starts the strike on a running server.
func (s *strike) begin() error {
	if s.on == onServer {
		if err := s.m.now.Load().running(); err != nil {
			return err
		}
	}
	s.before = harm(s.proxies())
	return s.do(s)
}

// end ends the strike, and counts it unless it had no target.
func (s *strike) end() error {
	if err := awaitHarm(s.proxies(), s.before, 3*time.Second); err != nil {
		s.t.Logf("%s: %v", s, err)
	} else {
		s.result.Nemeses[s.name]++
	}
	return s.undo(s)
}

// bout has some strikes happen at the same time, and end in another order.
func (c *cluster) bout(strikes []*strike) {
	c.t.Helper()
	events := make([]labcheck.Event, len(strikes))
	if slices.ContainsFunc(strikes, func(s *strike) bool { return remembered[s.name] }) {
		c.awaitServed()
	}
	for i, s := range strikes {
		events[i] = s.event()
		events[i].Begin = c.elapsed()
		c.must(s.String(), s.begin())
		c.t.Logf("%v %s", c.elapsed().Round(time.Millisecond), s)
		c.pause(500 * time.Millisecond)
	}
	c.pause(2 * time.Second)
	for _, i := range c.rng.Perm(len(strikes)) {
		s := strikes[i]
		c.must("after "+s.String(), s.end())
		events[i].End = c.elapsed()
		c.t.Logf("%v ended: %s", c.elapsed().Round(time.Millisecond), s)
	}
	c.events = append(c.events, events...)
}
