package worker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// A server that was refused for its clock starts when the clock has been set.
func TestClockSetAfterRefusal(t *testing.T) {
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				w.reg.SetClock(time.Now)
				n := w.nodes[0]
				n.skew.Store(int64(off))
				p := n.start()
				awaitErr(t, p, "set the clock")
				n.skew.Store(0) // the operator, or NTP, sets the clock
				time.Sleep(10 * time.Minute)
				if !p.keeper.Status().Held {
					t.Errorf("ten minutes after the clock was set right: %v", p.keeper.Err())
				}
			})
		})
	}
}

// The machine was suspended, so that its monotonic clock stood still, and its worker ID
// was taken meanwhile.
func TestSuspendedAndLost(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.reg.SetClock(time.Now)
		n := w.nodes[0]
		var lag atomic.Int64
		begin := time.Now()
		clock := worker.NewClockFrom(time.Now, func() time.Duration { return time.Since(begin) - time.Duration(lag.Load()) })
		w.opts.Layouts[0].WorkerBits = 1
		p := n.start(func(o *worker.Options) { o.Clock = clock })
		p.gen.clock = clock
		awaitHeld(t, p, 0)
		mustIssue(t, p, 10)
		p.pause()
		time.Sleep(time.Hour)
		hold(t, w.nodes[1], 1)
		// somebody takes 0 too
		r, _ := w.reg.Load(t.Context(), 0)
		nx := r
		nx.Instance, nx.Term, nx.Horizon = worker.NewInstance(), r.Term+1, time.Now().Add(30*time.Second).UnixMilli()
		if err := w.reg.Swap(t.Context(), r, nx); err != nil {
			t.Fatal(err)
		}
		lag.Store(int64(time.Hour))
		p.resume()
		time.Sleep(10 * time.Minute)
		if !p.keeper.Status().Held {
			t.Errorf("ten minutes after the machine was resumed: %v", p.keeper.Err())
		}
	})
}

// A server that cannot write its state claims nothing.
func TestBrokenDiskClaimsNothing(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 5 // js53
		w.opts.Horizon = 30 * time.Minute
		w.nodes[0].disk.broken.Store(true)
		p := w.nodes[0].start()
		time.Sleep(2 * time.Minute)
		records, _ := w.reg.List(t.Context())
		held := 0
		for _, r := range records {
			if r.Held() {
				held++
			}
		}
		q := w.nodes[1].start()
		time.Sleep(10 * time.Second)
		if held > 0 || !q.keeper.Status().Held {
			t.Errorf("%d worker IDs are used up by one server that cannot write its state; a healthy one: %v", held, q.keeper.Err())
			t.Log(p.keeper.Err())
		}
	})
}

// A holder that saw its worker ID freed, or lost in another way, must not go on from its
// file when it is started again without the registry.
func TestLostThenStartedWithoutRegistry(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		w.opts.Horizon = 30 * time.Minute
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 10)
		if _, err := worker.Free(t.Context(), w.reg, 0); err != nil {
			t.Fatal(err)
		}
		awaitLost(t, p)
		time.Sleep(10 * time.Millisecond) // in which the file is written
		p.kill()
		q := w.nodes[1].start()
		time.Sleep(3 * time.Minute)
		awaitHeld(t, q, 0)
		w.down.Store(true)
		p = w.nodes[0].start()
		time.Sleep(7 * time.Second)
		for range 5 {
			p.issue(500)
			q.issue(500)
		}
	})
}

// A clean restart while the registry is away goes on from the file.
func TestCleanRestartWithoutRegistry(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Horizon = 30 * time.Minute
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 10)
		w.down.Store(true)
		time.Sleep(time.Second)
		if err := p.stop(); err == nil {
			t.Error("handed back without a registry")
		}
		p = w.nodes[0].start()
		time.Sleep(time.Minute)
		if got := p.issue(10); got != 10 {
			t.Errorf("after a clean restart in an outage, with a valid state file: %d IDs, %v", got, p.keeper.Err())
		}
	})
}

// A copy of the directory that is older than the last ID is put in its place.
func TestReclaimOfOldCopy(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		w.opts.Horizon = 30 * time.Minute
		reclaim := func(o *worker.Options) { o.Reclaim = true }
		p := hold(t, w.nodes[0], 0, reclaim)
		mustIssue(t, p, 10)
		disk := w.copyDisk(w.nodes[0].disk)
		time.Sleep(time.Minute)
		mustIssue(t, p, 1500) // in a burst, borrowed from ahead of the clock
		p.kill()
		w.nodes[0].disk = disk // restored from the backup; the machine runs nothing else
		p = w.nodes[0].start(reclaim)
		time.Sleep(31 * time.Minute)
		awaitHeld(t, p, 0)
		mustIssue(t, p, 1500)
	})
}

// Everybody's clock was ahead and is set right: those who run go on with the time from
// before, and must not keep out who is right.
func TestRightClockAmongWrongPeers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world) {
		var off atomic.Int64
		off.Store(int64(10 * time.Second))
		w.reg.SetClock(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
		for i, n := range w.nodes {
			n.skew.Store(off.Load())
			hold(t, n, int64(i))
		}
		off.Store(0)
		for _, n := range w.nodes {
			n.skew.Store(0)
		}
		time.Sleep(time.Minute)
		if err := w.nodes[0].proc.stop(); err != nil {
			t.Fatal(err)
		}
		p := w.nodes[0].start()
		time.Sleep(10 * time.Minute)
		if !p.keeper.Status().Held {
			t.Errorf("restarted, with its clock as the registry's: %v", p.keeper.Err())
		}
	})
}

// Killed within a clean stop: the next start hands the worker ID back.
func TestReleaseLostThenRestarted(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0 // as an assigned ID: no other
		w.opts.Horizon = 30 * time.Minute
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 10)
		w.plan(func(_, next worker.Record) swapFault {
			if !next.Held() {
				return swapLost
			}
			return swapWorks
		})
		_ = p.stop()
		w.fault.Store(nil)
		begin := time.Now()
		p = w.nodes[0].start()
		for range 60 * 60 {
			if p.keeper.Status().Held {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("held again after %v", took)
		}
	})
}

// The registry fails right after each claim.
func TestFlappingRegistryCostsOneWorkerID(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 5
		w.opts.Horizon = 30 * time.Minute
		w.plan(func(_, next worker.Record) swapFault {
			if next.Held() {
				w.down.Store(true) // fails after each claim
				go func() { time.Sleep(20 * time.Second); w.down.Store(false) }()
			}
			return swapWorks
		})
		w.nodes[0].start()
		time.Sleep(10 * time.Minute)
		records, _ := w.reg.List(t.Context())
		held := 0
		for _, r := range records {
			if r.Held() {
				held++
			}
		}
		if held > 2 {
			t.Errorf("one server holds %d worker IDs", held)
		}
		w.fault.Store(nil)
		time.Sleep(31 * time.Second)
	})
}

// A worker ID that is assigned waits for a clock that is behind, and that is set later.
func TestAssignedClockSetLater(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		n := w.nodes[0]
		p := hold(t, n, 0)
		mustIssue(t, p, 10)
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		n.skew.Store(int64(-time.Hour)) // restarted, clock an hour behind
		p = n.start()
		time.Sleep(10 * time.Second)
		n.skew.Store(0) // NTP
		time.Sleep(30 * time.Minute)
		if !p.keeper.Status().Held {
			t.Errorf("half an hour after the clock was set right: %v", p.keeper.Err())
		}
	})
}

// After a clean stop a Java server may take the worker ID over, by the clock of the
// machine.
func TestSettle(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Second, -4 * time.Second} {
		t.Run(step.String(), func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				n := w.nodes[0]
				p := hold(t, n, 0, func(o *worker.Options) { o.Settle, o.MaxAhead = true, time.Second })
				p.gen.ahead = 1000
				n.skew.Store(int64(step))
				time.Sleep(time.Minute)
				mustIssue(t, p, 500)
				last := p.gen.cursor - 1
				if err := p.stop(); err != nil {
					t.Fatal(err)
				}
				if java := time.Now().Add(time.Duration(n.skew.Load())).UnixMilli(); java <= last {
					t.Errorf("stopped in order; the wall clock, by which Java goes on, is %d ms before the last ID", last-java)
				}
			})
		})
	}
}

// A record that has seen many layouts.
func TestStaticKeepsManyLayouts(t *testing.T) {
	s, err := worker.OpenStatic(openFile(t, t.TempDir()+"/static-1"), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := s.Load(t.Context(), 1)
	for i := range 64 {
		next := old
		next.Instance, next.Term = worker.NewInstance(), old.Term+1
		next.Layouts = append(append([]worker.Layout{}, old.Layouts...), worker.Layout{Name: fmt.Sprintf("layout-%02d-of-the-order-service", i), Epoch: 1767225600000, Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12})
		if err := s.Swap(t.Context(), old, next); err != nil {
			t.Fatalf("with %d layouts ever served: %v", i+1, err)
		}
		old = next
	}
}

// A tenure that issued nothing must not lower what was issued before it.
func TestIdleTenureKeepsTheFloor(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 1000)
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		before, _ := w.reg.Load(t.Context(), 0)
		p = hold(t, w.nodes[0], 0)
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		after, _ := w.reg.Load(t.Context(), 0)
		if after.Horizon < before.Horizon {
			t.Errorf("the floor went from %d to %d", before.Horizon, after.Horizon)
		}
	})
}

// A start from the file alone, with a clock that is wrong, is told when the registry is
// back.
func TestResumeWithWrongClockIsTold(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.reg.SetClock(time.Now)
		w.opts.Horizon = 30 * time.Minute
		n := w.nodes[0]
		p := hold(t, n, 0)
		mustIssue(t, p, 10)
		p.kill()
		w.down.Store(true)
		n.skew.Store(int64(20 * time.Minute))
		p = hold(t, n, 0)
		w.down.Store(false)
		time.Sleep(time.Hour)
		if s := p.keeper.Status(); s.Err == nil {
			t.Errorf("IDs carry a time that is off, and nobody says so: %+v", s)
		}
	})
}

// A start from the file alone needs the layouts, and a worker ID that they hold.
func TestResumeWithOtherLayouts(t *testing.T) {
	for name, change := range map[string]func(*worker.Layout){
		"other epoch": func(l *worker.Layout) { l.Epoch = 7 },
		"fewer bits":  func(l *worker.Layout) { l.Name, l.WorkerBits = "small", 0 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *world) {
				hold(t, w.nodes[0], 0)
				n := w.nodes[1]
				hold(t, n, 1)
				n.proc.kill()
				w.down.Store(true)
				p := n.start(func(o *worker.Options) {
					l := o.Layouts[0]
					change(&l)
					o.Layouts = []worker.Layout{l}
				})
				time.Sleep(5 * time.Second)
				if p.issue(1) > 0 {
					t.Error("it went on with the lease of another layout")
				}
			})
		})
	}
}
