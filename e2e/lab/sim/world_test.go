package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/e2e/lab"
)

// A search among no calls is none; an undecided one is no fault, and counts.
func TestExplained(t *testing.T) {
	w, ops := newWorld(1, "", 1), new(lab.Ops)
	wrong := errors.New("no order")
	for _, err := range []error{wrong, lab.ErrUndecided} {
		if err := w.explained(ops, func(*lab.Ops) error { return err }); err != nil {
			t.Errorf("without calls: %v", err)
		}
	}
	ops.Advance(0, time.Second, 1, leaf.Range{Start: 1, End: 2}, nil)
	for search, want := range map[error]error{wrong: wrong, lab.ErrUndecided: nil} {
		if err := w.explained(ops, func(*lab.Ops) error { return search }); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if w.searches != 2 || w.undecided != 1 {
		t.Errorf("%d searches, %d undecided", w.searches, w.undecided)
	}
}

// Faults are steps of the schedule until it heals: neither what comes of them, nor the end.
func TestSteps(t *testing.T) {
	w := newWorld(1, "", 1)
	w.note("the database is down")
	w.remark("m0.1 does not start")
	w.endFaults()
	w.note("stop m0.1")
	if w.steps != 1 || len(w.happens) != 4 {
		t.Errorf("%d steps in %q", w.steps, w.happens)
	}
}
