package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

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
