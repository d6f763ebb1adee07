package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// epochDelay is the claim delay of these tests, longer than any of the fail-overs takes.
const epochDelay = 15 * time.Second

// A lossyPair is a server with a replica, and a registry in it.
type lossyPair struct {
	url      string
	catchUp  func()
	cut      func() // the replica gets nothing more
	failOver func() // the replica takes over, the primary is dead
}

// lossyPairs start one of each kind.
var lossyPairs = map[string]func(t *testing.T) lossyPair{
	"postgres": func(t *testing.T) lossyPair {
		p := testserver.PostgresPair(t)
		url := p.URL(p.Primary.NewDatabase(t))
		return lossyPair{url + "&", func() { p.CatchUp(t) }, func() { p.Break(t) }, func() { p.FailOver(t) }}
	},
	"mariadb": func(t *testing.T) lossyPair {
		p, url, _ := newPair(t, impatient)
		return lossyPair{url + "?", func() { p.CatchUp(t) }, func() { p.Break(t) }, func() { failOver(t, p) }}
	},
	"redis": func(t *testing.T) lossyPair {
		p := testserver.RedisWithReplica(t, nil)
		must := func(do func() error) func() {
			return func() {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
		}
		return lossyPair{p.URL() + "?", must(p.CatchUp), must(p.Break), must(p.FailOver)}
	},
}

func (p lossyPair) config(t *testing.T) nodeConfig {
	return nodeConfig{Workers: p.url + "claim_delay=" + epochDelay.String(), Data: t.TempDir(), WorkerBits: 1, Horizon: 20 * time.Second}
}

// A start on a settled server issues at once.
func TestStartsOnServerThatStood(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for name, start := range lossyPairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			initWorkers(t, p.url)
			var all drivertest.Ranges
			config := p.config(t)
			n := startNode(t, &all, config)
			n.take(10_000) // after the wait of the first start
			n.stop()
			begin := time.Now()
			n = startNode(t, &all, config)
			n.take(10_000)
			if took := time.Since(begin); took >= epochDelay {
				t.Errorf("it took %v:\n%s", took, n.output())
			} else {
				t.Logf("IDs again after %v", took)
			}
			checkRanges(t, &all, 20_000)
		})
	}
}

// A fail-over loses a claim of a paused node; another node claims, and waits.
func TestFailOverLosesClaim(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for name, start := range lossyPairs {
		for i := range figure(1, 5) {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				if i == 0 {
					t.Parallel()
				}
				for !failOverLosesClaim(t, start(t), figure(60_000, 3_400_000)) {
					t.Log("the first node lost its lease, because the machine is busy: once more")
				}
			})
		}
	}
}

// failOverLosesClaim reports false if the second node got the first one's worker ID.
func failOverLosesClaim(t *testing.T, p lossyPair, part int) bool {
	initWorkers(t, p.url)
	var all drivertest.Ranges
	a := startNode(t, &all, p.config(t))
	first := a.take(part).Worker
	p.catchUp()
	p.cut()
	b := startNode(t, &all, p.config(t)) // its claim is lost
	lost := b.take(part).Worker
	if lost == first {
		checkRanges(t, &all, 2*int64(part))
		return false
	}
	b.signal(syscall.SIGSTOP)
	p.failOver()
	c := startNode(t, &all, p.config(t))
	until(t, 20*time.Second, "claiming", func() error {
		if _, err := c.try(1); err == nil || !strings.Contains(err.Error(), "the registry may lose writes") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	b.signal(syscall.SIGCONT)
	until(t, 3*epochDelay, "issuing on the other node", func() error {
		_, _ = b.try(part / 10)
		_, _ = a.try(part / 10)
		_, err := c.try(1)
		return err
	})
	answer, err := c.try(part)
	if err != nil || answer.Worker != lost {
		t.Errorf("worker %d, want %d; %v\n%s", answer.Worker, lost, err, c.output())
	}
	if _, err := b.try(1); err == nil {
		t.Error("two nodes issue under one worker ID")
	}
	checkRanges(t, &all, 3*int64(part))
	return true
}
