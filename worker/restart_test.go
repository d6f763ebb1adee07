package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

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
		time.Sleep(10 * time.Millisecond) // time for writing the file
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

// A clean restart without the registry continues from the file.
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

// Somebody replaces the directory by a copy from before the last ID.
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

// A start from the file alone needs the layouts, and a worker ID that they hold.
func TestResumeWithOtherLayouts(t *testing.T) {
	for name, change := range map[string]func(*worker.ServedLayout){
		"other epoch": func(l *worker.ServedLayout) { l.Epoch = 7 },
		"fewer bits":  func(l *worker.ServedLayout) { l.Name, l.WorkerBits = "small", 0 },
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
					o.Layouts = []worker.ServedLayout{l}
				})
				time.Sleep(5 * time.Second)
				if p.issue(1) > 0 {
					t.Error("it went on with the lease of another layout")
				}
			})
		})
	}
}

// An unused lease must not lower the end of earlier IDs.
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
		if after.Horizon.Before(before.Horizon) {
			t.Errorf("the floor went from %v to %v", before.Horizon, after.Horizon)
		}
	})
}

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
