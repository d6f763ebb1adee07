package worker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-id/leaf/worker"
)

// An action is one step of the world. Its kind decides the meaning of its fields.
type action struct {
	Do   string
	Node int
	N    int
	At   place
	Skew time.Duration
}

// actions are the steps of the model in folder model, and some more.
var actions = []string{
	"start", "start", "start", "issue", "issue", "issue", "reserve", "answer", "kill", "stop", "pause", "resume", "wait", "wait",
	"clock", "copy", "reboot", "registry", "network", "late", "disk", "issue everywhere", "free", "hang", "crash",
}

func drawAction(t *rapid.T) action {
	return action{
		Do:   rapid.SampledFrom(actions).Draw(t, "do"),
		Node: rapid.IntRange(0, 2).Draw(t, "node"),
		N:    rapid.IntRange(1, 400).Draw(t, "n"),
		At:   place(rapid.IntRange(0, 2).Draw(t, "at")),
		Skew: time.Duration(rapid.IntRange(-40_000, 40_000).Draw(t, "ms")) * time.Millisecond,
	}
}

// TestNoTimeHasTwoOwners has nodes do anything in any order, with any clocks and any
// faults of the network, the disks and the processes.
func TestNoTimeHasTwoOwners(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bits := rapid.IntRange(0, 2).Draw(rt, "worker bits")
		ownClock := rapid.Bool().Draw(rt, "registry has a clock")
		plan := rapid.SliceOfN(rapid.Custom(drawAction), 5, 60).Draw(rt, "plan")
		var err error
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3)
			defer w.end()
			w.opts.Layouts[0].WorkerBits = bits
			w.opts.Tolerance = time.Hour
			if ownClock {
				w.reg.Backend.SetClock(time.Now)
			}
			for _, a := range plan {
				w.do(a)
			}
			w.down.Store(false)
			w.fault.Store(nil)
			w.synced.Store(nil)
			w.everybody(50, atCursor)
			time.Sleep(time.Minute)
			w.everybody(50, byClock)
			err = w.check()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// do makes one step.
func (w *world) do(a action) {
	n := w.nodes[a.Node]
	switch p := n.proc; a.Do {
	case "start":
		if p == nil {
			n.start()
		}
	case "wait":
		time.Sleep(time.Duration(a.N) * 100 * time.Millisecond)
	case "clock":
		n.skew.Store(int64(a.Skew))
	case "registry":
		w.down.Store(!w.down.Load())
	case "network":
		w.faults(a.N)
	case "late":
		w.arrive()
	case "hang":
		w.hang()
	case "crash":
		w.crash()
	case "issue everywhere":
		w.everybody(a.N, a.At)
	case "free":
		w.free(a.N)
	case "copy":
		if p == nil { // n becomes a copy of another node, in any state
			n.disk = w.copyDisk(w.nodes[(a.Node+1)%3].disk)
		}
	case "reboot":
		if p != nil {
			p.kill()
		}
		w.reboot(n.disk)
	case "disk":
		n.disk.broken.Store(a.N%2 == 0)
	default:
		if p != nil {
			p.do(a)
		}
	}
	synctest.Wait()
}

// hang makes the registry's disk hang: reads show the writes, but the registry acknowledges none.
func (w *world) hang() {
	if w.synced.Load() == nil {
		w.synced.Store(new(w.reg.Backend.Snapshot()))
	}
}

// crash makes a registry with a hanging disk lose everything that it has not synced.
func (w *world) crash() {
	if synced := w.synced.Swap(nil); synced != nil {
		w.reg.Backend.Restore(*synced)
	}
}

func (p *process) do(a action) {
	switch a.Do {
	case "issue":
		p.gen.reserve(a.N, a.At)
		p.gen.answer()
	case "reserve":
		p.gen.reserve(a.N, a.At)
	case "answer":
		p.gen.answer()
	case "kill":
		p.kill()
	case "stop":
		_ = p.stop()
	case "pause":
		p.pause()
	case "resume":
		p.resume()
	}
}

// everybody issues as much as possible.
func (w *world) everybody(n int, at place) {
	for range 3 {
		for _, node := range w.nodes {
			if node.proc != nil {
				node.proc.gen.reserve(n, at)
				node.proc.gen.answer()
			}
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// faults has one in three of the next swaps meet a fault.
func (w *world) faults(seed int) {
	var calls atomic.Int64
	w.plan(func(_, _ worker.Record) swapFault {
		call := seed + int(calls.Add(1))
		if seed%4 == 0 || call%3 > 0 {
			return swapWorks
		}
		return swapFault(1 + (seed+call/3)%3)
	})
}

// free resets a worker ID that no process holds, as an operator may.
func (w *world) free(seed int) {
	id := int64(seed % 4)
	for _, n := range w.nodes {
		if n.proc != nil && n.proc.gen.holds(id) {
			return
		}
	}
	ctx := w.t.Context()
	if r, err := w.reg.Load(ctx, id); err == nil && !r.IsZero() && !r.Held() {
		_, _ = worker.Free(ctx, w.reg, id)
	}
}

func (g *generator) holds(id int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lease != nil && g.lease.Worker() == id
}

func (a action) String() string {
	return fmt.Sprintf("%s %d %d %d %v", a.Do, a.Node, a.N, a.At, a.Skew)
}
