package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// startHeld starts a process and waits until it has held worker ID 0 for a while.
func (n *node) startHeld(t testing.TB) *process {
	t.Helper()
	p := n.start()
	time.Sleep(claimDelay + 2*time.Second)
	awaitHeld(t, p, 0)
	return p
}

// inLossyBubble is inBubble with a registry that may lose writes and has one worker ID.
func inLossyBubble(t *testing.T, nodes int, test func(t *testing.T, w *world)) {
	t.Helper()
	inBubble(t, nodes, func(t *testing.T, w *world) {
		w.lossy.Store(true)
		w.opts.Layouts[0].WorkerBits = 0
		test(t, w)
	})
}

// claimDelay is that of a world.
const claimDelay = 11 * time.Second

// claimAndPause starts a process on n and pauses it right after its claim, before it has confirmed
// it.
func (w *world) claimAndPause(n *node) *process {
	w.t.Helper()
	started := make(chan *process, 1)
	w.plan(func(_, _ worker.Record) swapFault {
		w.fault.Store(nil)
		(<-started).pause()
		return swapWorks
	})
	p := n.start()
	started <- p
	time.Sleep(time.Second)
	if records, _ := w.reg.List(w.t.Context()); len(records) != 1 || !records[0].Held() {
		w.t.Fatalf("nothing was claimed: %v", records)
	}
	return p
}

// issueTogether has processes issue side by side for a while, and returns how much the
// first one did.
func issueTogether(d time.Duration, first *process, others ...*process) (got int) {
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(10 * time.Millisecond) {
		for _, p := range append(others, first) {
			n := p.gen.reserve(20, byClock)
			p.gen.answer()
			if p == first {
				got += n
			}
		}
	}
	return got
}

// A claim is lost before it is confirmed, and another node claims the worker ID.
func TestClaimLostBeforeItIsConfirmed(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		before := w.reg.Backend.Snapshot()
		p := w.claimAndPause(w.nodes[0])
		w.failOver(before)
		q := w.nodes[1].start()
		time.Sleep(claimDelay + time.Second)
		awaitHeld(t, q, 0)
		p.resume()
		issueTogether(5*time.Second, p, q)
		awaitErr(t, p, "all 1 worker IDs are in use")
		mustIssue(t, q, 10)
	})
}

// A claim is confirmed late, after another node held the worker ID: the registry has
// lost that, and is back at the first claim.
func TestClaimConfirmedAfterItsHorizon(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		p := w.claimAndPause(w.nodes[0])
		claimed := w.reg.Backend.Snapshot()
		time.Sleep(w.opts.Horizon)
		q := w.nodes[1].startHeld(t)
		mustIssue(t, q, 10)
		q.pause() // its generator goes on
		w.failOver(claimed)
		p.resume()
		issueTogether(5*time.Second, p, q)
	})
}

// The same with a holder: it was paused, and extends a lease that others had since.
func TestExtendedAfterItsHorizon(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		p := w.nodes[0].startHeld(t)
		mustIssue(t, p, 10)
		p.pause()
		time.Sleep(time.Minute)
		held := w.reg.Backend.Snapshot()
		q := w.nodes[1].startHeld(t)
		w.failOver(held)
		p.resume()
		issueTogether(5*time.Second, p, q)
	})
}

// The new server's clock is behind the clock of the claim. The lease of a paused holder has run out
// all the same.
func TestExtendedAfterItsHorizonByASlowClock(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		var offset atomic.Int64
		w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
		p := w.nodes[0].startHeld(t)
		mustIssue(t, p, 10)
		p.pause()
		records, err := w.reg.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(records[0].Horizon) + 100*time.Millisecond)
		held := w.reg.Backend.Snapshot()
		q := w.nodes[1].start()
		time.Sleep(time.Second)
		awaitHeld(t, q, 0)
		offset.Store(int64(-4 * time.Second)) // less than the tolerance
		w.failOver(held)
		p.resume()
		issueTogether(5*time.Second, q, p)
	})
}

// The registry's clock is wrong, and nothing was lost: a holder goes on.
func TestRegistryClockJumpsBeyondTheHorizon(t *testing.T) {
	inLossyBubble(t, 1, func(t *testing.T, w *world) {
		var jump atomic.Int64
		w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(time.Duration(jump.Load())) })
		p := w.nodes[0].startHeld(t)
		jump.Store(int64(time.Hour))
		for range 20 {
			time.Sleep(time.Second)
			mustIssue(t, p, 10)
		}
		if s := p.keeper.Status(); s.Lost > 0 || s.Err == nil {
			t.Errorf("it lost its lease, or says nothing: %+v", s)
		}
	})
}

// A node is killed, the registry loses its lease, and another node claims the worker
// ID. The first one is started again and cannot ask the registry.
func TestAloneAfterALoss(t *testing.T) {
	for name, step := range map[string]time.Duration{"": 0, "with a clock that was set back": -time.Minute, "with a clock that was set forward": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inLossyBubble(t, 2, func(t *testing.T, w *world) {
				before := w.reg.Backend.Snapshot()
				p := w.nodes[0].startHeld(t)
				for range 10 {
					mustIssue(t, p, 10)
					time.Sleep(time.Second)
				}
				p.kill()
				w.failOver(before)
				q := w.nodes[1].start()
				time.Sleep(time.Second)
				w.down.Store(true)
				w.nodes[0].skew.Store(int64(step))
				p = w.nodes[0].start()
				if issueTogether(5*time.Second, p, q) == 0 && step == 0 {
					t.Errorf("a few seconds after the last extension it does not go on from its file: %v", p.keeper.Err())
				}
				issueTogether(claimDelay, p, q)
				p.kill()
				p = w.nodes[0].start() // and again, long after the last extension
				if issueTogether(5*time.Second, p, q) > 0 {
					t.Error("it goes on from its file")
				}
			})
		})
	}
}

// A process does not continue if its file leaves it no safe times.
func TestAloneWithNothingLeft(t *testing.T) {
	inLossyBubble(t, 1, func(t *testing.T, w *world) {
		p := w.nodes[0].startHeld(t)
		w.down.Store(true)
		if issueTogether(4*time.Second, p) == 0 {
			t.Error("a holder stops as soon as the registry is away")
		}
		p.kill()
		p = w.nodes[0].start()
		time.Sleep(1500 * time.Millisecond)
		if s := p.keeper.Status(); s.Held {
			t.Errorf("it goes on from its file: %+v", s)
		}
	})
}

// A process that went on from the file keeps its lease where nothing was lost.
func TestAloneUntilTheRegistryAnswers(t *testing.T) {
	inLossyBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := n.startHeld(t)
		for range 10 {
			mustIssue(t, p, 10)
			time.Sleep(time.Second)
		}
		p.kill()
		w.down.Store(true)
		p = n.start()
		time.Sleep(1400 * time.Millisecond) // it asks again after another 100 ms
		w.down.Store(false)
		for range 20 {
			time.Sleep(time.Second)
			mustIssue(t, p, 10)
		}
		if s := p.keeper.Status(); s.Term != 1 || s.Lost > 0 {
			t.Errorf("the lease was not kept: %+v", s)
		}
	})
}

// One that went on from the file and finds its record lost does not put it back: others
// may have had the worker ID since.
func TestAlonePutsNothingBack(t *testing.T) {
	inLossyBubble(t, 1, func(t *testing.T, w *world) {
		before := w.reg.Backend.Snapshot()
		n := w.nodes[0]
		p := n.startHeld(t)
		mustIssue(t, p, 10)
		p.kill()
		w.down.Store(true)
		p = n.start()
		time.Sleep(time.Second)
		w.failOver(before)
		w.down.Store(false)
		awaitLost(t, p)
		if got := issueTogether(claimDelay-3*time.Second, p); got > 0 {
			t.Errorf("it issued %d times", got)
		}
		awaitHeld(t, p, 0)
		mustIssue(t, p, 10)
	})
}

// A process continues from its file alone. Meanwhile the registry loses the worker ID and gives it
// to another node; then a server takes over that knows the process, and not the other node.
func TestAloneWhileAnotherHeldTheWorkerID(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		before := w.reg.Backend.Snapshot()
		p := w.nodes[0].startHeld(t)
		for range 10 {
			mustIssue(t, p, 10)
			time.Sleep(time.Second)
		}
		p.kill()
		known := w.reg.Backend.Snapshot()
		w.failOver(before)
		w.nodes[0].away.Store(true)
		p = w.nodes[0].start()
		q := w.nodes[1].start()
		time.Sleep(claimDelay + 3*time.Second)
		awaitHeld(t, q, 0)
		mustIssue(t, q, 10)
		w.failOver(known)
		w.nodes[0].away.Store(false)
		issueTogether(2*claimDelay, p, q)
		awaitHeld(t, p, 0)
	})
}

// A process continues from its file with a larger max_ahead than before: it would issue further
// ahead than other nodes wait after a loss.
func TestAloneWithALongerClaimDelay(t *testing.T) {
	inLossyBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := n.startHeld(t)
		mustIssue(t, p, 10)
		p.kill()
		w.down.Store(true)
		p = n.start(func(o *worker.Options) { o.MaxAhead = 20 * time.Second })
		time.Sleep(1500 * time.Millisecond)
		w.down.Store(false)
		time.Sleep(2 * time.Second)
		awaitErr(t, p, "have all of them wait for 29s")
	})
}

// Without a known incarnation a claimer pauses for longer than the claim delay. Meanwhile the
// registry loses its claim, and then another node's, through a server that still has the first one.
func TestClaimerPausedWithoutIncarnation(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		w.unnamed.Store(true)
		before := w.reg.Backend.Snapshot()
		p := w.claimAndPause(w.nodes[0])
		claimed := w.reg.Backend.Snapshot()
		w.failOver(before)
		q := w.nodes[1].startHeld(t)
		q.pause() // its generator goes on
		w.failOver(claimed)
		p.resume()
		issueTogether(w.opts.Extend, p, q)
		q.resume()
		issueTogether(2*claimDelay, p, q)
	})
}
