package mysql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/worker"
)

var (
	uidBits   = worker.ServedLayout{Name: "uid", Epoch: 1463673600000, Tick: 1000, TimeBits: 31, WorkerBits: 19, SequenceBits: 13}
	otherBits = worker.ServedLayout{Name: "uid", Epoch: 1463673600000, Tick: 1000, TimeBits: 31, WorkerBits: 18, SequenceBits: 14}
	extraBits = worker.ServedLayout{Name: "a", Epoch: 1463673600000, Tick: 1000, TimeBits: 29, WorkerBits: 21, SequenceBits: 13}
)

// runNodes runs a keeper of the layouts on n until it holds a worker ID or reports a layout.
func runNodes(t *testing.T, n *mysql.Nodes, layouts ...worker.ServedLayout) error {
	t.Helper()
	k, err := worker.NewKeeper(n, &worker.Options{Layouts: layouts})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s := k.Status()
		if _, refused := errors.AsType[*worker.LayoutError](s.Err); s.Held || refused {
			return s.Err
		}
	}
	t.Fatal("no worker ID and no refusal", k.Status().Err)
	return nil
}

func wantLayoutError(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*worker.LayoutError](err); !ok {
		t.Errorf("got %v, want a LayoutError", err)
	}
}

func TestNodesRefuseOtherBits(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	if err := runNodes(t, b.start(t, nil), uidBits, uidBits.Default("uid")); err != nil {
		t.Fatal(err)
	}
	wantLayoutError(t, runNodes(t, b.start(t, nil), otherBits))
	renamed := otherBits
	renamed.Name = "shop"
	wantLayoutError(t, runNodes(t, b.start(t, nil), renamed, renamed.Default("uid"))) // keys are labels
	b.wantIDs(t, 1)                                                                   // a refused start uses up no worker ID
	if err := runNodes(t, b.start(t, nil), uidBits, uidBits.Default("uid"), renamed); err != nil {
		t.Error(err)
	}
	b.wantIDs(t, 1, 2)
}

// A table of uid-generator's own script has no leaf_layout next to it.
func TestNodesCreateLayouts(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	b.exec(t, "DROP TABLE leaf_layout") // fails if Init has not created it
	if err := runNodes(t, b.start(t, nil), uidBits); err != nil {
		t.Fatal(err)
	}
	wantLayoutError(t, runNodes(t, b.start(t, nil), otherBits))
}

// Two servers that start at once both find no layout: the later one to write is refused, and
// records nothing.
func TestNodesRefuseOtherBitsAtOnce(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	first, second := b.start(t, nil), b.start(t, nil)
	wantAssigned(t, first, 1)
	wantAssigned(t, second, 2)
	claim := func(n *mysql.Nodes, id int64, layouts ...worker.ServedLayout) error {
		_, err := n.Swap(t.Context(), worker.Record{Worker: id},
			worker.Record{Worker: id, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(1), Layouts: layouts})
		return err
	}
	if err := claim(first, 1, uidBits); err != nil {
		t.Fatal(err)
	}
	wantLayoutError(t, claim(second, 2, extraBits, otherBits))
	if r, err := second.Load(t.Context(), 2); err != nil || r.Held() {
		t.Errorf("after the refusal the record is %+v, %v", r, err)
	}
	changed := extraBits
	changed.TimeBits, changed.WorkerBits = 28, 22
	if err := claim(second, 2, changed, uidBits); err != nil {
		t.Errorf("the refused claim recorded a layout: %v", err)
	}
}

// Of many first starts with different bits one wins.
func TestNodesLayoutsRace(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	const starts = 8
	results := make(chan error, starts)
	for i := range starts {
		n := b.start(t, nil)
		id, err := n.Assign(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		mine := uidBits
		mine.WorkerBits, mine.SequenceBits = mine.WorkerBits+i, mine.SequenceBits-i
		go func() {
			_, err := n.Swap(t.Context(), worker.Record{Worker: id},
				worker.Record{Worker: id, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(1), Layouts: []worker.ServedLayout{mine, mine.Default("uid")}})
			results <- err
		}()
	}
	won := 0
	for range starts {
		if err := <-results; err == nil {
			won++
		} else {
			wantLayoutError(t, err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d first starts recorded their bits, want 1", won, starts)
	}
}

// A server with a worker ID does not need the table.
func TestNodesLayoutsDatabaseAway(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	n := b.start(t, nil)
	if err := runNodes(t, n, uidBits); err != nil {
		t.Fatal(err)
	}
	b.exec(t, "DROP TABLE leaf_layout", "DROP TABLE WORKER_NODE")
	if _, err := n.List(t.Context()); err != nil {
		t.Error(err)
	}
}
