package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/drivers"
)

// A leaseFault is one thing that goes wrong, and is right again when do returns.
type leaseFault struct {
	name  string
	alone bool // nothing else goes wrong meanwhile
	link  bool // it strikes the connections to the registry
	store bool // it strikes the registry itself
	do    func(*leaseStrike) error
}

// A leaseStrike is one fault that strikes a server.
type leaseStrike struct {
	*leaseCluster
	n   *leaseNode
	rng *rand.Rand
}

// leaseFaults are all of them. Those that strike stores of counters, too, have the same names.
var leaseFaults = []leaseFault{
	{name: "kill -9, restart", do: func(s *leaseStrike) error {
		s.n.life.kill()
		s.pause(500 * time.Millisecond)
		s.launch(s.n)
		return nil
	}},
	{name: "stop, restart", do: func(s *leaseStrike) error {
		s.n.quit()
		s.launch(s.n)
		return nil
	}},
	{name: "kill -9, restart with an emptied disk", do: (*leaseStrike).emptyDisk},
	{name: "a copy of the disk on another machine", do: (*leaseStrike).copiedDisk},
	{name: "SIGSTOP, SIGCONT", do: func(s *leaseStrike) error {
		return s.during(4*time.Second, func() error { return s.n.signal(syscall.SIGSTOP) }, func() error { return s.n.signal(syscall.SIGCONT) })
	}},
	{name: "SIGSTOP beyond the lease, SIGCONT", do: (*leaseStrike).pausedBeyond},
	{name: "clock set", do: func(s *leaseStrike) error {
		off := s.anyOffset()
		return s.during(5*time.Second, func() error { return s.n.setClock(off) }, func() error { return s.n.setClock(0) })
	}},
	{name: "clock wrong at the start", do: (*leaseStrike).wrongAtStart},
	{name: "clock strobes", do: func(s *leaseStrike) error {
		var errs []error
		for range 30 {
			errs = append(errs, s.n.setClock(s.anyOffset()))
			s.pause(200 * time.Millisecond)
		}
		return errors.Join(append(errs, s.n.setClock(0))...)
	}},
	{name: "upgrade, roll-back", do: (*leaseStrike).otherVersion},
	{name: "state file of the oldest release", do: (*leaseStrike).oldestState},
	{name: "state file of a newer release", do: (*leaseStrike).futureState},
	{name: "connections to the store cut", link: true, do: onLinks((*proxy).cut, (*proxy).mend)},
	{name: "connections to the store half open", link: true, do: onLinks((*proxy).halve, func(*proxy) {})},
	{name: "answers of the store dropped", link: true, do: onLinks(func(p *proxy) { p.mute.Store(true) }, unmute)},
	{name: "the way to the store slow", link: true, do: func(s *leaseStrike) error {
		late := s.rng.Int64N(int64(1500 * time.Millisecond))
		return onLinks(func(p *proxy) { p.delay.Store(late) }, func(p *proxy) { p.delay.Store(0) })(s)
	}},
	{name: storeFrozen, store: true, do: func(s *leaseStrike) error {
		most := 4 * time.Second
		if s.rng.IntN(3) == 0 {
			most = 2 * leaseHorizon // it may be away for longer than any lease lasts
		}
		return s.duringStore(storeFrozen, most)
	}},
	{name: storeKilled, store: true, do: func(s *leaseStrike) error { return s.duringStore(storeKilled, 3*time.Second) }},
	{name: readOnly, store: true, do: func(s *leaseStrike) error { return s.duringStore(readOnly, 5*time.Second) }},
	{name: diskFull, store: true, do: func(s *leaseStrike) error { return s.duringStore(diskFull, 5*time.Second) }},
	{name: failedOver, store: true, alone: true, do: (*leaseStrike).failOver},
	{name: restoredWorkers, alone: true, do: (*leaseStrike).restored},
}

// restoredWorkers is what docs/backup.md says of worker IDs.
const restoredWorkers = "restored from an old backup, horizons waited for"

// errNoOccasion is wrapped by a fault that could not strike at the time, or had nothing to strike.
var errNoOccasion = errors.New("no occasion")

// noOccasion is the reason of one that never had any.
const noOccasion = "it had no occasion in this run"

// do has a fault strike a server that runs, and notes when.
func (s *leaseStrike) do(fault *leaseFault) {
	e := labcheck.Event{Name: fault.name, Begin: s.elapsed()}
	if !fault.store {
		e.On = s.n.name
	}
	err := s.n.life.running()
	if err == nil {
		err = fault.do(s)
	}
	if errors.Is(err, errNoOccasion) {
		s.t.Logf("%s: %v", e, err)
		return
	}
	if err != nil {
		s.t.Errorf("%s: %v", e, err)
	}
	e.End = s.elapsed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	s.result.Nemeses[fault.name]++
}

// pause waits for a random time, at most.
func (s *leaseStrike) pause(most time.Duration) { time.Sleep(time.Duration(s.rng.Int64N(int64(most)))) }

func (s *leaseStrike) during(most time.Duration, do, undo func() error) error {
	err := do()
	s.pause(most)
	return errors.Join(err, undo())
}

// duringStore has the registry suffer a fault that it has in its own way.
func (s *leaseStrike) duringStore(name string, most time.Duration) error {
	fault := s.reg.faults[name]
	return s.during(most, s.asked(fault.do), fault.undo)
}

// asked has the server ask the registry while a fault lasts: where it does so at its start alone,
// it starts then.
func (s *leaseStrike) asked(do func() error) func() error {
	if !s.reg.once {
		return do
	}
	return func() error {
		err := do()
		s.n.life.kill()
		s.launch(s.n)
		return err
	}
}

// onLinks is a fault of all connections of a server to its registry.
func onLinks(do, undo func(*proxy)) func(*leaseStrike) error {
	each := func(s *leaseStrike, do func(*proxy)) func() error {
		return func() error {
			for _, link := range s.n.links {
				do(link)
			}
			return nil
		}
	}
	return func(s *leaseStrike) error {
		before := harm(s.n.links)
		return s.during(4*time.Second, s.asked(each(s, do)), func() error {
			return errors.Join(awaitHarm(s.n.links, before, leaseHorizon), each(s, undo)())
		})
	}
}

// anyOffset returns how far a clock is set: from milliseconds to an hour, back or forth.
func (s *leaseStrike) anyOffset() time.Duration {
	sizes := []time.Duration{5 * time.Millisecond, time.Second, 4 * time.Second, time.Minute, time.Hour}
	off := sizes[s.rng.IntN(len(sizes))]
	return off * time.Duration(1-2*s.rng.IntN(2))
}

func (s *leaseStrike) emptyDisk() error {
	s.n.life.kill()
	err := os.RemoveAll(s.n.data)
	s.launch(s.n)
	return err
}

// spare returns a server that runs only while a fault lasts.
func (s *leaseStrike) spare() *leaseNode {
	s.mu.Lock()
	s.spares++
	name := fmt.Sprint("spare", s.spares)
	s.mu.Unlock()
	n := s.newNode(name)
	n.off = s.n.off
	return n
}

// copiedDisk has another machine come up with a copy of the server's data directory, at the same
// path, while the server runs, is paused, or is dead and comes back.
func (s *leaseStrike) copiedDisk() error {
	twin := s.spare()
	if !strings.Contains(s.reg.url, javaPort) { // there each has a name of its own
		twin.args = s.n.args // the same registry by the same name, or the file would be another one's
	}
	state := s.rng.IntN(3)
	var err error
	switch state {
	case 0:
		err = s.n.signal(syscall.SIGSTOP)
	case 1:
		s.n.life.kill()
	}
	twin.within = copyElsewhere(s.t, s.n.data)
	twin.args = slices.Clone(twin.args)
	twin.args[slices.Index(twin.args, "--data")+1] = s.n.data
	s.launch(twin)
	s.pause(4 * time.Second)
	switch state {
	case 0:
		err = errors.Join(err, s.n.signal(syscall.SIGCONT))
	case 1:
		s.launch(s.n)
	}
	s.pause(4 * time.Second)
	if s.rng.IntN(2) == 0 {
		twin.life.kill()
	} else {
		twin.quit()
	}
	return err
}

// pausedBeyond pauses a server until its lease has run out, while others take all worker IDs.
func (s *leaseStrike) pausedBeyond() error {
	err := s.n.signal(syscall.SIGSTOP)
	var wg sync.WaitGroup
	spares := []*leaseNode{s.spare(), s.spare()}
	for _, n := range spares {
		s.launch(n)
	}
	time.Sleep(leaseHorizon + time.Second)
	s.pause(3 * time.Second)
	err = errors.Join(err, s.n.signal(syscall.SIGCONT))
	s.pause(2 * time.Second)
	for _, n := range spares {
		wg.Go(n.quit)
	}
	wg.Wait()
	return err
}

func (s *leaseStrike) wrongAtStart() error {
	s.n.life.kill()
	err := s.n.setClock(s.anyOffset())
	s.launch(s.n)
	s.pause(4 * time.Second)
	return errors.Join(err, s.n.setClock(0))
}

// otherVersion continues with the other build.
func (s *leaseStrike) otherVersion() error {
	if s.rng.IntN(2) == 0 {
		s.n.life.kill()
	} else {
		s.n.quit()
	}
	if s.n.build == builds[0] {
		s.n.build = builds[1]
	} else {
		s.n.build = builds[0]
	}
	s.launch(s.n)
	return nil
}

// failOver makes the registry's other server take over, without the last writes: among them the
// claim of a server that has lost its disk, and that may be paused meanwhile.
func (s *leaseStrike) failOver() error {
	fault := s.reg.faults[failedOver]
	claims := make(chan error, 1)
	go func() { // it claims again after the replica was cut off
		s.n.life.kill()
		err := os.RemoveAll(s.n.data)
		s.launch(s.n)
		claims <- err
	}()
	err := fault.do()
	err = errors.Join(err, <-claims)
	if s.rng.IntN(2) == 0 {
		err = errors.Join(err, s.during(4*time.Second, func() error { return s.n.signal(syscall.SIGSTOP) }, func() error { return s.n.signal(syscall.SIGCONT) }))
	}
	s.pause(8 * time.Second)
	return errors.Join(err, fault.undo())
}

// restored puts back the backup from the beginning, as docs/backup.md says: all servers end, and
// those after it begin when the last horizon has passed.
func (s *leaseStrike) restored() error {
	last, err := s.reg.lastHorizon(s.t)
	if err != nil {
		return err
	}
	if wait := time.Until(last); wait > 2*leaseHorizon {
		return fmt.Errorf("%w: a clock was ahead, and the last lease lasts for %v", errNoOccasion, wait)
	}
	for _, n := range s.nodes {
		if s.rng.IntN(2) == 0 {
			n.life.kill()
		} else {
			n.quit()
		}
	}
	if last, err = s.reg.lastHorizon(s.t); err != nil {
		return err
	}
	if err := s.reg.restore(); err != nil {
		return err
	}
	time.Sleep(time.Until(last))
	for _, n := range s.nodes {
		s.launch(n)
	}
	return nil
}

// lastHorizon returns the highest horizon of a registry. Worker IDs for one use have no horizon.
func (r *leaseRegistry) lastHorizon(t *testing.T) (time.Time, error) {
	if r.once {
		return time.Time{}, nil
	}
	backend, err := drivers.Open(strings.Replace(r.url, javaPort, "1", 1), nil)
	if err != nil {
		return time.Time{}, err
	}
	defer backend.Close()
	registry, err := backend.Registry(&drivers.RegistryOptions{Observe: true})
	if err != nil {
		return time.Time{}, err
	}
	records, err := registry.List(t.Context())
	var last time.Time
	for _, r := range records {
		if r.Horizon.After(last) {
			last = r.Horizon
		}
	}
	return last, err
}
