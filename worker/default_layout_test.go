package worker_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

var (
	wide   = worker.ServedLayout{Name: "wide", Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}
	narrow = worker.ServedLayout{Name: "narrow", Tick: 1, TimeBits: 43, WorkerBits: 1, SequenceBits: 11}
)

// serving serves layouts. The first one is the default.
func serving(layouts ...worker.ServedLayout) func(*worker.Options) {
	return func(o *worker.Options) { o.Layouts = append(layouts, layouts[0].Default("snowflake")) }
}

// older serves layouts as releases did that recorded no default one.
func older(layouts ...worker.ServedLayout) func(*worker.Options) {
	return func(o *worker.Options) { o.Layouts = layouts }
}

const keepDefault = "keep that default layout"

// Callers without a layout's name have one layout for ever, under any name.
func TestDefaultLayoutStays(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0, serving(wide))
		q := w.nodes[1].start(serving(narrow))
		awaitErr(t, q, keepDefault)
		if !errors.As(q.keeper.Err(), new(*worker.LayoutError)) {
			t.Error("not a LayoutError")
		}
		_ = q.stop()
		mustIssue(t, hold(t, w.nodes[1], 1, serving(wide, narrow)), 10) // a layout more, for callers who name it
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		awaitErr(t, w.nodes[0].start(serving(narrow)), keepDefault) // also when its holder is gone
	})
}

// Records of earlier releases do not say which of their layouts was the default: it may be
// any of them, and no other.
func TestFirstDefaultLayout(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world) {
		hold(t, w.nodes[0], 0, older(wide))
		p := w.nodes[1].start(serving(narrow))
		awaitErr(t, p, keepDefault)
		_ = p.stop()
		renamed := wide
		renamed.Name = "renamed"
		mustIssue(t, hold(t, w.nodes[1], 1, serving(renamed)), 10)
		awaitErr(t, w.nodes[2].start(serving(narrow)), keepDefault)
	})
}

// A claim refused for its layouts changes no layout of the record.
func TestRefusedClaimIsRestored(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		// The second node claims between the first one's look and its claim.
		var once atomic.Bool
		var q *process
		w.plan(func(old, next worker.Record) swapFault {
			if once.CompareAndSwap(false, true) {
				q = w.nodes[1].start(serving(narrow))
				time.Sleep(500 * time.Millisecond)
			}
			return swapWorks
		})
		p := w.nodes[0].start(serving(wide))
		time.Sleep(time.Minute)
		if p.keeper.Status().Held && q.keeper.Status().Held {
			t.Fatal("both hold a lease")
		}
		records, err := w.reg.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defaults := make(map[worker.ServedLayout]bool)
		for _, r := range records {
			for _, l := range slices.DeleteFunc(slices.Clone(r.Layouts), func(l worker.ServedLayout) bool { return !l.IsDefault() }) {
				defaults[l] = true
			}
		}
		if len(defaults) > 1 {
			t.Errorf("the records name several default layouts: %+v", records)
		}
		if !p.keeper.Status().Held && !q.keeper.Status().Held {
			t.Errorf("none holds a lease: %v, %v", p.keeper.Err(), q.keeper.Err())
		}
	})
}
