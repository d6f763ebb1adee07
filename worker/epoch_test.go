package worker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// awaitSoon waits until a process may issue, for less time than any wait takes.
func awaitSoon(t *testing.T, p *process) {
	t.Helper()
	for begin := time.Now(); p.keeper.Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Second {
			t.Fatalf("%s waits: %v", p.name, p.keeper.Err())
		}
	}
}

// settle has one process of n hold a worker ID until the registry's incarnation has stood, and
// stops it.
func settle(t *testing.T, n *node) {
	t.Helper()
	p := n.startHeld(t)
	mustIssue(t, p, 10)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
}

// On a registry that has answered for long, a start issues at once; after its restart it does not.
func TestStartsWithoutWait(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		first := w.nodes[0].start()
		awaitErr(t, first, "the registry may lose writes")
		for range claimDelay/time.Second - 1 {
			time.Sleep(time.Second)
			if err := first.keeper.Err(); !errors.Is(err, worker.ErrWaiting) {
				t.Errorf("while it waits: %v", err)
			}
		}
		time.Sleep(3 * time.Second)
		if s := first.keeper.Status(); !s.Held || s.ClaimWaits != 1 || s.Incarnation != "epoch 0" || s.ClaimDelay != claimDelay {
			t.Errorf("after the first start: %+v", s)
		}
		stop(t, first)
		p := w.nodes[1].start()
		awaitSoon(t, p)
		mustIssue(t, p, 10)
		if s := p.keeper.Status(); s.ClaimWaits != 0 {
			t.Errorf("it waited: %+v", s)
		}
		stop(t, p)
		w.failOver(w.reg.Backend.Snapshot()) // which loses nothing
		begin := time.Now()
		p = w.nodes[0].start()
		awaitErr(t, p, "the registry may lose writes")
		time.Sleep(claimDelay + time.Second)
		awaitSoon(t, p)
		mustIssue(t, p, 10)
		if s := p.keeper.Status(); s.Floor.Before(begin.Add(claimDelay)) || s.IncarnationSince.Before(begin) {
			t.Errorf("it may issue from %v on, %v after the fail-over", s.Floor, s.Floor.Sub(begin))
		}
	})
}

func stop(t *testing.T, p *process) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
}

// A claimer pauses between its read and its swap. Another node claims the worker ID meanwhile, and
// a fail-over loses that claim. The time must not be older than the incarnation, and the claimer
// must ask for both again after the swap.
func TestFailOverBeforeTheSwap(t *testing.T) {
	for asks, after := range []string{"the incarnation", "the time"} {
		t.Run(after, func(t *testing.T) {
			inLossyBubble(t, 2, func(t *testing.T, w *world) {
				w.reg.Backend.SetClock(time.Now)
				settle(t, w.nodes[0])
				before := w.reg.Backend.Snapshot()
				paused := pauseAfterAsks(w, w.nodes[1], asks+1)
				c := w.nodes[1].start(func(o *worker.Options) { o.CallTimeout = time.Hour })
				<-paused
				p := w.nodes[0].start()
				awaitSoon(t, p)
				for range 2 * claimDelay / time.Second {
					time.Sleep(time.Second)
					mustIssue(t, p, 10)
				}
				w.failOver(before)
				c.resume()
				if issueTogether(w.opts.Extend, c, p) > 0 || p.keeper.Status().Lost > 1 {
					t.Error("it did not wait")
				}
				issueTogether(2*claimDelay, c, p)
			})
		})
	}
}

// A claimer pauses at some point of its start, and a fail-over loses its claim. Another node waits
// until the worker ID counts. The first one then continues with its old view.
func TestFailOverWhileTheClaimerIsPaused(t *testing.T) {
	for asks := range 7 {
		t.Run(fmt.Sprint(asks+1), func(t *testing.T) {
			inLossyBubble(t, 2, func(t *testing.T, w *world) {
				w.reg.Backend.SetClock(time.Now)
				settle(t, w.nodes[0])
				before := w.reg.Backend.Snapshot()
				paused := pauseAfterAsks(w, w.nodes[1], asks+1)
				c := w.nodes[1].start(func(o *worker.Options) { o.CallTimeout, o.Horizon = time.Hour, time.Hour })
				<-paused
				w.failOver(before)
				p := w.nodes[0].start()
				time.Sleep(claimDelay + time.Second)
				awaitSoon(t, p)
				mustIssue(t, p, 10)
				c.resume()
				if issueTogether(w.opts.Extend, c, p) > 0 {
					t.Error("it did not ask again")
				}
				issueTogether(2*claimDelay, c, p)
			})
		})
	}
}

// pauseAfterAsks pauses the next process of n when it has asked for the incarnation or the
// time so many times, and then closes the channel.
func pauseAfterAsks(w *world, n *node, asks int) <-chan struct{} {
	paused := make(chan struct{})
	w.asked.Store(new(func(p *process) {
		if p.node != n {
			return
		}
		if asks--; asks == 0 {
			w.asked.Store(nil)
			p.pause()
			close(paused)
		}
	}))
	return paused
}

// A fail-over during the wait starts it again.
func TestFailOverWhileWaiting(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		c := w.nodes[0].start()
		time.Sleep(claimDelay - time.Second)
		w.failOver(w.reg.Backend.Snapshot())
		begin := time.Now()
		for time.Since(begin) < claimDelay-3*time.Second {
			if c.issue(1) > 0 {
				t.Fatalf("it issued %v after the fail-over", time.Since(begin))
			}
			time.Sleep(100 * time.Millisecond)
		}
		awaitHeld(t, c, 0)
		mustIssue(t, c, 10)
	})
}

// A process killed during its claim's wait has no lease to continue.
func TestKilledWhileWaiting(t *testing.T) {
	inLossyBubble(t, 1, func(t *testing.T, w *world) {
		p := w.nodes[0].start()
		time.Sleep(500 * time.Millisecond)
		p.kill()
		w.down.Store(true)
		p = w.nodes[0].start()
		if got := issueTogether(2*claimDelay, p); got > 0 {
			t.Errorf("it issued %d times", got)
		}
		w.down.Store(false)
		awaitHeld(t, p, 0)
	})
}

// No node stamps for a new primary with a slow clock, until somebody corrects the clock.
func TestNewPrimaryWithAClockBehind(t *testing.T) {
	inLossyBubble(t, 3, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 1
		w.reg.Backend.SetClock(time.Now)
		other := w.nodes[2].startHeld(t)
		before := w.reg.Backend.Snapshot()
		p := w.nodes[0].start()
		awaitSoon(t, p)
		p.pause() // it has yet to notice that its record was lost
		w.failOver(before)
		w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(-time.Hour) })
		time.Sleep(w.opts.Extend + 500*time.Millisecond) // the other node extends its lease
		w.reg.Backend.SetClock(time.Now)
		c := w.nodes[1].start()
		issueTogether(time.Second, c, p, other)
		p.resume()
		issueTogether(2*claimDelay, c, p, other)
	})
}

// Where another epoch leaves no mark a silence may have been one, and so was a write under
// another name.
func TestUntrackedEpochs(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		w.untracked.Store(true)
		settle(t, w.nodes[0])
		time.Sleep(w.opts.Extend)
		p := w.nodes[0].start()
		awaitSoon(t, p)
		stop(t, p)
		time.Sleep(3 * w.opts.Extend)
		p = w.nodes[0].start()
		awaitErr(t, p, "the registry may lose writes")
		q := w.nodes[1].start() // an old stamp does not help it
		awaitErr(t, q, "all 1 worker IDs are in use")
	})
}

// Operators choose the first server again. The only marks are the writes to the other one
// meanwhile.
func TestUntrackedSwitchBack(t *testing.T) {
	inLossyBubble(t, 3, func(t *testing.T, w *world) {
		w.untracked.Store(true)
		w.opts.Layouts[0].WorkerBits = 1
		first := w.nodes[0].startHeld(t)
		second := w.nodes[1].start()
		awaitSoon(t, second)
		w.epoch.Add(1)
		second.pause()
		time.Sleep(w.opts.Extend + 500*time.Millisecond) // the first node extends its lease
		second.kill()
		w.epoch.Add(-1)
		stop(t, first)
		awaitErr(t, w.nodes[2].start(), "the registry may lose writes")
	})
}

// All nodes of a registry have one claim delay: the largest, which the first one sets.
func TestOneClaimDelay(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 1
		long := func(o *worker.Options) { o.MaxAhead = 20 * time.Second }
		const longer = claimDelay + 18*time.Second
		p := w.nodes[0].start(long)
		awaitErr(t, p, "may be used from")
		time.Sleep(longer)
		awaitHeld(t, p, 0)
		w.failOver(w.reg.Backend.Snapshot())
		q := w.nodes[1].start()
		time.Sleep(longer - 3*time.Second)
		awaitErr(t, q, "the registry may lose writes")
		if s := q.keeper.Status(); s.ClaimDelay != longer {
			t.Errorf("it waits for %v, want %v", s.ClaimDelay, longer)
		}
		time.Sleep(4 * time.Second)
		awaitHeld(t, q, 1)
	})
}

func TestClaimDelayOfTheRegistryIsShorter(t *testing.T) {
	inLossyBubble(t, 2, func(t *testing.T, w *world) {
		settle(t, w.nodes[0])
		p := w.nodes[1].start(func(o *worker.Options) { o.MaxAhead = 20 * time.Second })
		awaitErr(t, p, "have all of them wait for 29s")
		if err := p.keeper.Err(); !errors.Is(err, worker.ErrClaimDelay) {
			t.Errorf("got %v", err)
		}
		p.kill()
		p = w.nodes[1].start(func(o *worker.Options) { o.MaxAhead, o.ClaimDelay = 20*time.Second, 30*time.Second })
		time.Sleep(30 * time.Second)
		awaitHeld(t, p, 0)
		stop(t, p)
		q := w.nodes[0].start()
		awaitSoon(t, q)
		if s := q.keeper.Status(); s.ClaimDelay != 30*time.Second {
			t.Errorf("the claim delay is %v", s.ClaimDelay)
		}
	})
}

// Servers of any age take over again and again, while nodes start, stop and are killed. No
// node is cut off for as long as the claim delay.
func TestRandomFailOvers(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inLossyBubble(t, 4, func(t *testing.T, w *world) { failOverAtRandom(t, w, rand.New(rand.NewPCG(seed, 9))) })
		})
	}
}

func failOverAtRandom(t *testing.T, w *world, r *rand.Rand) {
	w.opts.Layouts[0].WorkerBits = r.IntN(2)
	w.untracked.Store(r.IntN(4) == 0)
	servers := []memory.Snapshot{w.reg.Backend.Snapshot()}
	issued, fails := 0, 0
	for range 600 {
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
		n := w.nodes[r.IntN(len(w.nodes))]
		switch k := r.IntN(40); {
		case k < 5 && n.proc == nil:
			n.start()
		case k == 6 && n.proc != nil:
			n.proc.kill()
		case k == 7 && n.proc != nil:
			_ = n.proc.stop()
		case k < 12:
			servers = append(servers, w.reg.Backend.Snapshot())
		case k == 12:
			w.failOver(servers[max(0, len(servers)-1-r.IntN(8))])
			fails++
		}
		for _, n := range w.nodes {
			if n.proc != nil {
				issued += n.proc.gen.reserve(20, byClock)
				n.proc.gen.answer()
			}
		}
	}
	if err := w.check(); err != nil {
		t.Fatalf("after %d fail-overs: %v", fails, err)
	}
	t.Logf("%d fail-overs, %d times issued", fails, issued)
	if strings.Contains(t.Name(), "/0") && issued == 0 {
		t.Error("nothing was issued")
	}
}

// A claimer finds another server, whose clock is off by a little more than the tolerance, and
// pauses during that look: the offset at that moment counts.
func TestStalledInTheLook(t *testing.T) {
	for stall := range int64(6) {
		inLossyBubble(t, 1, func(t *testing.T, w *world) {
			var ahead, calls, asks atomic.Int64
			w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			settle(t, w.nodes[0])
			time.Sleep(time.Second)
			w.asked.Store(new(func(*process) {
				switch asks.Add(1) {
				case 2: // before the claim
					w.epoch.Add(1)
				case 3: // in the look after it
					ahead.Store(int64(worker.DefaultTolerance + 500*time.Millisecond))
				case 4:
					calls.Store(1)
				}
			}))
			begin := time.Now()
			p := w.nodes[0].start(func(o *worker.Options) {
				o.Clock = worker.NewClockFrom(time.Now, func() time.Duration {
					if calls.Load() > 0 && calls.Add(1) == stall+2 {
						time.Sleep(time.Second)
					}
					return time.Since(begin)
				})
			})
			time.Sleep(3 * time.Second)
			if s := p.keeper.Status(); s.Held || asks.Load() < 4 || calls.Load() < stall+2 {
				t.Errorf("stalled at call %d of the clock: %+v", stall, s)
			}
			ahead.Store(0)
			time.Sleep(claimDelay + 3*time.Second)
			if s := p.keeper.Status(); !s.Held {
				t.Errorf("it does not go on: %v", s.Err)
			}
		})
	}
}
