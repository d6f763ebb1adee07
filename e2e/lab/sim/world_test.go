package sim

import "testing"

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
