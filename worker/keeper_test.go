package worker_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// hold starts a process and waits until it holds a worker ID.
func hold(t testing.TB, n *node, want int64, change ...func(*worker.Options)) *process {
	t.Helper()
	p := n.start(change...)
	awaitHeld(t, p, want)
	return p
}

func awaitHeld(t testing.TB, p *process, want int64) {
	t.Helper()
	for range 1000 {
		if s := p.keeper.Status(); s.Held && p.keeper.Err() == nil {
			if s.Worker != want {
				t.Fatalf("%s holds worker ID %d, want %d", p.name, s.Worker, want)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s holds no worker ID: %v", p.name, p.keeper.Err())
}

// awaitErr waits until a process says that it has no lease, for a reason with text in it.
func awaitErr(t testing.TB, p *process, text string) {
	t.Helper()
	var err error
	for range 600 {
		if err = p.keeper.Err(); err != nil && strings.Contains(err.Error(), text) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: got error %v, want one with %q", p.name, err, text)
}

// awaitLost waits until a process has noticed that it lost its lease.
func awaitLost(t testing.TB, p *process) {
	t.Helper()
	for range 600 {
		if p.keeper.Status().Lost == 1 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s has not noticed that it lost its lease", p.name)
}

func mustIssue(t testing.TB, p *process, n int) {
	t.Helper()
	if got := p.issue(n); got != n {
		t.Fatalf("%s issued %d times of %d: %v", p.name, got, n, p.keeper.Err())
	}
}

func TestNodesGetWorkerIDsOfTheirOwn(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, w *world) {
		for i, n := range w.nodes {
			mustIssue(t, hold(t, n, int64(i)), 100)
		}
		late := &node{w: w, name: "late", disk: w.newDisk()}
		w.nodes = append(w.nodes, late)
		p := late.start()
		awaitErr(t, p, "all 4 worker IDs are in use")
		if err := w.nodes[2].proc.stop(); err != nil {
			t.Fatal(err)
		}
		awaitHeld(t, p, 2)
		mustIssue(t, p, 100)
	})
}

func TestCleanRestartKeepsWorkerID(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		for range 3 {
			p := hold(t, n, 0)
			mustIssue(t, p, 10)
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second) // the time borrowed ahead of the clock
		}
	})
}

func TestKilledProcessIsHandedBackAtItsMark(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := hold(t, n, 0)
		mustIssue(t, p, 1000)
		p.kill()
		p = hold(t, n, 1) // the mark of 0 is ahead of the clock
		mustIssue(t, p, 1000)
		records, _ := w.reg.List(t.Context())
		if r := records[0]; r.Held() || r.Horizon.After(time.Now().Add(5*time.Second)) {
			t.Errorf("worker 0 was not handed back: %+v", r)
		}
	})
}

func TestCopiedDirectoryGetsAnotherWorkerID(t *testing.T) {
	for name, original := range map[string]func(p *process){
		"running": func(*process) {},
		"paused":  (*process).pause,
		"killed":  (*process).kill,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				p := hold(t, w.nodes[0], 0)
				mustIssue(t, p, 100)
				twin := &node{w: w, name: "copy", disk: w.copyDisk(w.nodes[0].disk)}
				w.nodes = append(w.nodes, twin)
				original(p)
				q := hold(t, twin, 1)
				mustIssue(t, q, 500)
				p.resume()
				time.Sleep(5 * time.Second)
				if name != "killed" {
					mustIssue(t, p, 500)
				}
				mustIssue(t, q, 500)
			})
		})
	}
}

func TestCopiedDirectoryWithoutRegistry(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 100)
		twin := &node{w: w, name: "copy", disk: w.copyDisk(w.nodes[0].disk)}
		w.nodes = append(w.nodes, twin)
		w.down.Store(true)
		q := twin.start()
		awaitErr(t, q, "ask the worker registry")
		mustIssue(t, p, 100)
		if got := q.issue(1); got != 0 {
			t.Errorf("the copy issued %d times", got)
		}
	})
}

func TestStartWithoutRegistry(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0)
		w.down.Store(true)
		for range 3 {
			for range 2 {
				p.gen.reserve(100, atCursor)
				p.gen.answer()
				time.Sleep(100 * time.Millisecond)
			}
			p.kill()
			p = hold(t, w.nodes[0], 0)
		}
		fresh := w.nodes[1].start()
		awaitErr(t, fresh, "ask the worker registry")
		time.Sleep(40 * time.Second)
		if p.issue(1) != 0 || p.keeper.Err() == nil {
			t.Errorf("issued beyond the horizon; error %v", p.keeper.Err())
		}
		w.down.Store(false)
		awaitHeld(t, p, 0)
		mustIssue(t, p, 100)
		awaitHeld(t, fresh, 1)
	})
}

func TestRebootedMachineTakesAnotherWorkerID(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := hold(t, n, 0)
		mustIssue(t, p, 100)
		p.kill()
		w.reboot(n.disk)
		mustIssue(t, hold(t, n, 1), 100)
		n.proc.kill()
		w.reboot(n.disk)
		w.down.Store(true)
		awaitErr(t, n.start(), "ask the worker registry")
	})
}

func TestPausedBeyondItsHorizon(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 100)
		p.gen.reserve(5, byClock) // callers on their way
		p.pause()
		time.Sleep(time.Minute)
		q := hold(t, w.nodes[1], 0)
		mustIssue(t, q, 1000)
		p.gen.answer()
		p.gen.reserve(1000, byClock) // before anything of the process has looked at the time
		p.gen.answer()
		p.resume()
		awaitLost(t, p)
		mustIssue(t, q, 1000)
	})
}

func TestFreedWorkerIDIsGivenUp(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 100)
		r, err := worker.Free(t.Context(), w.reg, 0)
		if err != nil || r.Held() || r.Term != 2 {
			t.Fatalf("freed: %+v, %v", r, err)
		}
		time.Sleep(3 * time.Second)
		awaitHeld(t, p, 1)
		mustIssue(t, p, 100)
	})
}

func TestLayoutsAreCompared(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0)
		other := func(o *worker.Options) {
			o.Layouts = []worker.ServedLayout{{Name: "leaf", Epoch: 5, Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}}
		}
		q := w.nodes[1].start(other)
		awaitErr(t, q, "give the new layout another name")
		if !errors.As(q.keeper.Err(), new(*worker.LayoutError)) {
			t.Error("not a LayoutError")
		}
		_ = q.stop()
		mustIssue(t, hold(t, w.nodes[1], 1, func(o *worker.Options) {
			o.Layouts = []worker.ServedLayout{{Name: "other", Epoch: 5, Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}}
		}), 10)
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		awaitErr(t, w.nodes[0].start(other), "give the new layout another name") // also when its holder is gone
	})
}

func TestLayoutsAreComparedAfterTheClaim(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		// The second node claims between the first one's look and its claim.
		var once atomic.Bool
		var q *process
		w.plan(func(old, next worker.Record) swapFault {
			if once.CompareAndSwap(false, true) {
				q = w.nodes[1].start(func(o *worker.Options) {
					o.Layouts = []worker.ServedLayout{{Name: "leaf", Epoch: 5, Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}}
				})
				time.Sleep(500 * time.Millisecond)
			}
			return swapWorks
		})
		p := w.nodes[0].start()
		time.Sleep(10 * time.Second)
		if held := p.keeper.Status().Held; held && q.keeper.Status().Held {
			t.Error("both serve a layout of one name with other values")
		}
	})
}

// The hand-back of a dead process's lease is on its way when the next process is killed
// too, and the one after finds no registry: the file must not give the lease again.
func TestHandBackVoidsTheFileFirst(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := hold(t, n, 0)
		p.gen.reserve(100, atCursor)
		p.gen.answer()
		p.kill()
		w.plan(func(_, next worker.Record) swapFault {
			if !next.Held() {
				return swapLate
			}
			return swapLost
		})
		p = n.start()
		time.Sleep(time.Second)
		p.kill()
		w.down.Store(true)
		p = n.start()
		time.Sleep(5 * time.Second)
		for range 2 {
			p.gen.reserve(100, atCursor)
			p.gen.answer()
			time.Sleep(100 * time.Millisecond)
		}
		w.down.Store(false)
		w.fault.Store(nil)
		w.arrive()
		w.opts.Layouts[0].WorkerBits = 0
		w.opts.Layouts[0].Name = "other"
		q := hold(t, w.nodes[1], 0)
		for range 2 {
			q.gen.reserve(100, atCursor)
			q.gen.answer()
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// A process restarts after another node has claimed its worker ID.
func TestHandBackOfWhatAnotherNodeHolds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 100)
		p.kill()
		time.Sleep(time.Minute)
		q := hold(t, w.nodes[1], 0)
		mustIssue(t, q, 100)
		p = w.nodes[0].start()
		awaitErr(t, p, "all 1 worker IDs are in use")
		time.Sleep(10 * time.Second)
		mustIssue(t, q, 100)
		if s := q.keeper.Status(); !s.Held || s.Lost > 0 {
			t.Errorf("another node handed the lease back: %+v", s)
		}
	})
}
