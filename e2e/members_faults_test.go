package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leaf-id/leaf/internal/hint"
)

// A memberFault happens to servers that are all members and served, and leaves them so.
type memberFault struct {
	name    string
	missing func(*memberSet) error // the missing means of the system; nil: it needs no means
	strike  func(*memberSet)
}

var memberFaults = []memberFault{
	{"kill -9 of the leader", nil, (*memberSet).loseLeader},
	{"two of three killed", nil, (*memberSet).loseTwo},
	{"all killed at once, other peer lists", nil, (*memberSet).loseAll},
	{"the leader paused", nil, (*memberSet).freeze},
	{"the leader cut off", (*memberSet).hasHosts, (*memberSet).cutOff},
	{"all cut off from each other", (*memberSet).hasHosts, (*memberSet).scatter},
	{"a member wiped, removed, added again", nil, (*memberSet).wipe},
	{"the leader removed, a new server added", nil, (*memberSet).replace},
}

// stockCalls are the calls that each server must answer from stock while too few members run.
const stockCalls = 300

// fromStock has servers answer calls while a fault lasts that leaves them their stock alone.
func (m *memberSet) fromStock(servers []*memberServer, fault func()) {
	m.t.Helper()
	m.quiet.Lock()
	defer m.quiet.Unlock()
	for _, s := range servers {
		until(m.t, time.Minute, "a stock of "+s.name, func() error {
			n, err := s.stock()
			if err == nil && n < stockCalls {
				err = fmt.Errorf("%d IDs", n)
			}
			return err
		})
	}
	fault()
	for _, s := range servers {
		for range stockCalls {
			if _, err := m.take(s, 1); err != nil {
				m.t.Fatalf("%s has a stock, and a call failed: %v", s.name, err)
			}
		}
	}
}

// refuses requires that servers without a majority allocate nothing.
func (m *memberSet) refuses(servers ...*memberServer) {
	m.t.Helper()
	for _, s := range servers {
		if err := m.allocate(s); err == nil {
			m.t.Errorf("%s allocates without a majority", s.name)
		}
	}
}

func (s *memberServer) kill() { s.now.Load().kill() }

func (m *memberSet) loseLeader() {
	leader, others := m.leader()
	var lost time.Time
	m.fromStock(others, func() { leader.kill(); lost = time.Now() })
	m.await(others...)
	m.t.Logf("allocations again %v after the leader's death", time.Since(lost).Round(time.Millisecond))
	m.launch(leader)
}

func (m *memberSet) loseTwo() {
	leader, others := m.leader()
	m.fromStock(others[:1], func() { leader.kill(); others[1].kill() })
	m.refuses(others[0])
	m.launch(leader, others[1])
}

// loseAll also has each server start with a list of peers of its own.
func (m *memberSet) loseAll() {
	var all sync.WaitGroup
	for _, s := range m.servers {
		all.Go(s.kill)
	}
	all.Wait()
	m.quiet.Lock() // all calls have ended
	defer m.quiet.Unlock()
	highest := m.highest.Load()
	m.servers[1].peers = m.servers[1].addr + ",127.0.0.1:1"
	m.servers[2].peers = m.servers[0].addr
	m.launch(m.servers...)
	for _, s := range m.servers {
		s.peers = ""
		until(m.t, 2*time.Minute, "served", func() error {
			ranges, err := m.take(s, 1)
			if err == nil && ranges[0].Start < highest {
				m.t.Errorf("%s issued %d after all were killed, and %d was issued before", s.name, ranges[0].Start, highest-1)
			}
			return err
		})
	}
}

// freeze pauses the leader until the others have one of their own. Its late allocations may count for
// nothing.
func (m *memberSet) freeze() {
	leader, others := m.leader()
	process := leader.now.Load().cmd.Process
	m.fromStock(others, func() { m.must(process.Signal(syscall.SIGSTOP)) })
	m.await(others...)
	m.must(process.Signal(syscall.SIGCONT))
}

func (m *memberSet) cutOff() {
	leader, others := m.leader()
	var cut time.Time
	m.fromStock(m.servers, func() { m.must(m.unplug(leader)); cut = time.Now() })
	m.await(others...)
	m.t.Logf("allocations again %v after the leader was cut off", time.Since(cut).Round(time.Millisecond))
	m.refuses(leader)
	m.must(m.plugIn(leader))
}

func (m *memberSet) scatter() {
	m.fromStock(m.servers, func() {
		for _, s := range m.servers {
			m.must(m.unplug(s))
		}
	})
	m.refuses(m.servers...)
	for _, s := range m.servers {
		m.must(m.plugIn(s))
	}
}

func (m *memberSet) wipe() {
	_, others := m.leader()
	s := others[0]
	s.kill()
	m.must(os.RemoveAll(s.data))
	refused := launch(m.t, m.serveLine(s)...)
	select {
	case <-refused.exited:
	case <-time.After(2 * time.Minute):
		m.t.Fatalf("a wiped member goes on:\n%s", refused.output())
	}
	if out := refused.output(); !strings.Contains(out, hint.ErrEmptied.Error()) {
		m.t.Fatalf("a wiped member was not refused:\n%s", out)
	}
	m.remove(s)
	m.must(os.RemoveAll(s.data))
	m.join(s)
}

// remove removes a member from the cluster.
func (m *memberSet) remove(s *memberServer) {
	m.t.Helper()
	m.servers = slices.DeleteFunc(m.servers, func(o *memberServer) bool { return o == s })
	m.leaf(m.servers[0], "cluster", "remove", s.addr, "--cluster", m.addrs())
}

func (m *memberSet) replace() {
	m.join(m.newServer())
	old, _ := m.leader()
	m.remove(old)
	old.kill()
	m.quiet.Lock()
	defer m.quiet.Unlock()
	old.now.Store(nil)
}
