package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A steadyClient takes IDs from one server at an even pace. It fails the test if a call fails.
type steadyClient struct {
	turn sync.Mutex // locked: the client pauses

	mu     sync.Mutex
	issued []time.Time // one for each call
	failed error
}

const (
	steadyPace  = 10 * time.Millisecond
	steadyBatch = 10
	steadyStock = 10 * int(time.Second/steadyPace) * steadyBatch // lasts for 10 seconds
)

// steadily begins a steady client of a server, which ends with the test.
func (m *memberSet) steadily(s *memberServer) *steadyClient {
	c := new(steadyClient)
	over := m.over
	m.wg.Go(func() {
		pace := time.NewTicker(steadyPace)
		defer pace.Stop()
		for c.err() == nil {
			select {
			case <-over:
				return
			case <-pace.C:
			}
			c.turn.Lock()
			_, err := m.take(s, steadyBatch)
			c.turn.Unlock()
			c.mu.Lock()
			if c.failed = err; err == nil {
				c.issued = append(c.issued, time.Now())
			}
			c.mu.Unlock()
		}
	})
	return c
}

func (c *steadyClient) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// since returns how many IDs the client got after a time.
func (c *steadyClient) since(begin time.Time) (ids int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.issued) - 1; i >= 0 && c.issued[i].After(begin); i-- {
		ids += steadyBatch
	}
	return ids
}

// awaitReady waits until the next restart may come, see docs/cluster.md: all members answer, and each has
// served for long enough to have stock for more than an election.
func (m *memberSet) awaitReady() {
	m.t.Helper()
	until(m.t, time.Minute, "answers and stock of all members", func() error {
		out := m.leaf(m.servers[0], "cluster", "status", "--cluster", m.addrs())
		if strings.Count(out, " answers") != len(m.servers) {
			return fmt.Errorf("%s", out)
		}
		for _, s := range m.servers {
			if stock, err := s.stock(); err != nil || stock < steadyStock {
				return fmt.Errorf("%s has %d IDs in stock: %w", s.name, stock, err)
			}
		}
		return nil
	})
}

// TestMembersRestart restarts each of three servers in turn, as an upgrade does, under load. A server
// that runs answers every call, and no ID comes twice.
func TestMembersRestart(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	m := newMemberSet(t, memberConfig, false)
	clients := make([]*steadyClient, len(m.servers))
	for i, s := range m.servers {
		clients[i] = m.steadily(s)
	}
	for i, s := range m.servers {
		m.awaitReady()
		begin := time.Now()
		clients[i].turn.Lock() // as a load balancer does before the restart
		s.now.Load().stop()
		m.launch(s)
		m.await(s)
		clients[i].turn.Unlock()
		m.struck("a restart", begin)
	}
	begin := time.Now()
	for i, c := range clients {
		until(t, time.Minute, "calls after the restarts", func() error {
			if c.since(begin) == 0 && c.err() == nil {
				return fmt.Errorf("%s was not called", m.servers[i].name)
			}
			return nil
		})
		if err := c.err(); err != nil {
			t.Errorf("a call to %s failed while others restarted: %v", m.servers[i].name, err)
		}
	}
	m.check()
}

// TestMembersOutage has two of three servers killed. The third serves its callers from stock for the
// outage budget, at the pace that they had before.
func TestMembersOutage(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	const budget = 8 * time.Second
	m := newMemberSet(t, fmt.Sprintf("segment: {outage_budget: %v}\nsnowflake: {enable: false}\npublic_read: true\n", budget), false)
	alone, others := m.servers[0], m.servers[1:]
	client := m.steadily(alone)
	begin := time.Now()
	until(t, time.Minute, "the stock of a steady demand", func() error {
		if age := time.Since(begin); age < budget*5/4 {
			return fmt.Errorf("after %v", age)
		}
		return nil
	})
	killed := time.Now()
	demand := client.since(killed.Add(-budget))
	for _, s := range others {
		s.kill()
		s.now.Store(nil)
	}
	var served int
	until(t, time.Minute, "the end of the stock", func() error {
		if served = client.since(killed); client.err() == nil {
			return fmt.Errorf("%d IDs served", served)
		}
		return nil
	})
	t.Logf("%d IDs issued in the %v before the outage, %d in it, over %v", demand, budget, served, time.Since(killed).Round(100*time.Millisecond))
	if served < demand*9/10 { // a refill begins below nine tenths
		t.Errorf("two of three were killed: %d IDs were served from stock, and %d issued in the %v before", served, demand, budget)
	}
	m.check()
}
