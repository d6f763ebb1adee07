package worker_test

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// A machine has the locks of its processes.
type machine struct {
	mu     sync.Mutex
	locked map[string]bool
}

func (m *machine) lock(l worker.ServedLayout, id int64) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := fmt.Sprint(l, id)
	if m.locked[name] {
		return nil, fmt.Errorf("%s is %w", name, worker.ErrInUse)
	}
	m.locked[name] = true
	return unlocker(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locked, name)
	}), nil
}

func (m *machine) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.locked)
}

type unlocker func()

func (u unlocker) Close() error { u(); return nil }

// Processes of one machine have different worker IDs, although they have nothing but the machine in
// common. The second registry here is the first one that says that worker ID 0 is free.
func TestMachineLock(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		m := &machine{locked: make(map[string]bool)}
		locked := func(o *worker.Options) { o.Lock = m.lock }
		other, err := m.lock(worker.ServedLayout{Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}, 0) // its name does not count
		if err != nil {
			t.Fatal(err)
		}
		p := w.nodes[0].start(locked)
		time.Sleep(10 * time.Second)
		if s := p.keeper.Status(); !s.Held || s.Worker == 0 {
			t.Fatalf("beside worker ID 0: %+v", s)
		}
		mustIssue(t, p, 10)
		if n := m.count(); n != 2 {
			t.Errorf("%d locks, want 2", n)
		}
		q := w.nodes[1].start(locked)
		time.Sleep(10 * time.Second)
		if s := q.keeper.Status(); !s.Held || s.Worker == 0 || s.Worker == p.keeper.Status().Worker {
			t.Fatalf("beside two others: %+v", s)
		}
		before := p.keeper.Status().Worker
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if n := m.count(); n != 2 {
			t.Errorf("%d locks after a stop, want 2", n)
		}
		_ = other.Close()
		hold(t, w.nodes[0], before, locked) // though 0 is free
		mustIssue(t, q, 10)
	})
}

// A process that finds every worker ID locked continues when one is free.
func TestMachineLockWaits(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		m := &machine{locked: make(map[string]bool)}
		other, err := m.lock(worker.ServedLayout{Tick: 1, TimeBits: 41, SequenceBits: 12}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := w.nodes[0].start(func(o *worker.Options) { o.Lock = m.lock })
		awaitErr(t, p, "worker ID 0 is in use by another process of this machine")
		_ = other.Close()
		time.Sleep(10 * time.Second)
		awaitHeld(t, p, 0)
	})
}
