package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// A server with a wrong clock starts after somebody has set the clock.
func TestClockSetAfterRefusal(t *testing.T) {
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				w.reg.Backend.SetClock(time.Now)
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

// was taken meanwhile.
func TestSuspendedAndLost(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.reg.Backend.SetClock(time.Now)
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
		// another node takes 0 too
		r, _ := w.reg.Load(t.Context(), 0)
		nx := r
		nx.Instance, nx.Term, nx.Horizon = worker.NewInstance(), r.Term+1, time.Now().Add(30*time.Second)
		if _, err := w.reg.Swap(t.Context(), r, nx); err != nil {
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

// Nodes with wrong clocks claimed before, and must not keep out a node with the right time.
func TestRightClockAmongWrongPeers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world) {
		var off atomic.Int64
		off.Store(int64(10 * time.Second))
		w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
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

// An assigned worker ID waits for a slow clock until somebody sets it.
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

// back.
func TestResumeWithWrongClockIsTold(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.reg.Backend.SetClock(time.Now)
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
		if s := p.keeper.Status(); s.Err == nil || s.ClockOffset != 20*time.Minute {
			t.Errorf("IDs carry a time that is off, and the status does not say so: %+v", s)
		}
	})
}
