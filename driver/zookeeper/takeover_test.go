package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/zookeeper"
)

func TestAdoptionAfterStandStill(t *testing.T) {
	tr := newTree(t)
	startJava(t, tr, "192.0.2.3", "8080").stop()
	startJava(t, tr, "192.0.2.2", "8080").stop()
	began := time.Now()
	l := tr.leaf(t, nil)
	if id := assign(t, l); id != 1 {
		t.Errorf("worker ID %d, want 1", id)
	}
	if took := time.Since(began); took < still {
		t.Errorf("taken over after %v, want at least %v", took, still)
	}
	hold(t, l, 1)
	node := tr.path("forever", child("192.0.2.2:8080", 1))
	_, stat := tr.get(node)
	eventually(t, "it uploads", func() bool { _, now := tr.get(node); return now.Version > stat.Version+1 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// Now that it wrote last, it need not wait.
	if id := assign(t, tr.leaf(t, func(o *zookeeper.Options) { o.StandStill = time.Hour })); id != 1 {
		t.Errorf("worker ID %d, want 1", id)
	}
}

// TestNoteOfAnEarlierNode: a node has the name and age of the one in the note, but somebody deleted
// the tree and made it again.
func TestNoteOfAnEarlierNode(t *testing.T) {
	tr := newTree(t)
	before := tr.leaf(t, nil)
	id := assign(t, before)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	node := tr.path("forever", child("192.0.2.2:8080", int(id)))
	data, stat := tr.get(node)
	if err := tr.conn.Delete(node, stat.Version); err != nil {
		t.Fatal(err)
	}
	tr.create(node, data)
	l := tr.leaf(t, func(o *zookeeper.Options) { o.StandStill = time.Hour })
	if _, err := l.Assign(t.Context(), 1023); !waits(err) {
		t.Errorf("got %v, want a wait for it to stand still", err)
	}
}

// The error names a wait as a wait, at once and in the same words until its end.
func TestWaitIsTold(t *testing.T) {
	tr := newTree(t)
	startJava(t, tr, "192.0.2.3", "8080").stop()
	startJava(t, tr, "192.0.2.2", "8080").stop()
	l := tr.leaf(t, nil)
	var told error
	eventually(t, "the ID is assigned", func() bool {
		_, err := l.Assign(t.Context(), 1023)
		if err == nil {
			return true
		}
		if !waits(err) || errors.Is(err, context.DeadlineExceeded) || told != nil && told.Error() != err.Error() {
			t.Fatalf("got error %v, then %v", told, err)
		}
		told = err
		return false
	})
	if told == nil {
		t.Error("there was no wait")
	}
}

func TestRunningJavaServerIsNotReplaced(t *testing.T) {
	tr := newTree(t)
	startJava(t, tr, "192.0.2.3", "8080")
	j := startJava(t, tr, "192.0.2.2", "8080")
	l := tr.leaf(t, nil)
	for range 2 {
		_, err := settled(t, l)
		isTaken(t, "assign", err)
		if err == nil || !strings.Contains(err.Error(), "192.0.2.2:8080") {
			t.Errorf("%v does not name the address", err)
		}
	}
	j.stop()
	assignOnceStopped(t, l, 1)
}

// TestJavaServerTakesOurAddress has one write to our node, which nothing can hinder:
// the watch tells of it where the uploads are rare.
func TestJavaServerTakesOurAddress(t *testing.T) {
	for _, every := range []time.Duration{upload, time.Minute} {
		t.Run(every.String(), func(t *testing.T) { javaTakesOurAddress(t, every) })
	}
}

func javaTakesOurAddress(t *testing.T, every time.Duration) {
	tr := newTree(t)
	l := tr.leaf(t, func(o *zookeeper.Options) { o.UploadEvery = every })
	id := assign(t, l)
	held := hold(t, l, id)
	signals, err := l.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	j := startJava(t, tr, "192.0.2.2", "8080")
	if j.worker != id {
		t.Fatalf("the Java server is worker %d, want %d", j.worker, id)
	}
	for range signals { // until it is closed
	}
	_, err = l.Load(t.Context(), id)
	isTaken(t, "load", err)
	next := held
	next.Horizon = next.Horizon.Add(time.Millisecond)
	_, swapErr := l.Swap(t.Context(), held, next)
	isTaken(t, "swap", swapErr)
	_, err = l.Watch(t.Context(), id)
	isTaken(t, "watch", err)
	_, err = settled(t, l)
	isTaken(t, "assign", err)
	j.stop()
	_, stat := tr.get(j.node)
	again := tr.leaf(t, func(o *zookeeper.Options) { o.UploadEvery = time.Millisecond })
	if got := assign(t, again); got != id {
		t.Errorf("worker ID %d, want %d", got, id)
	}
	if _, now := tr.get(j.node); now.Version != stat.Version {
		t.Errorf("the node was written to by who lost it, or before the lease was held")
	}
	if _, err := again.Load(t.Context(), id); err != nil {
		t.Errorf("load after it was assigned anew: %v", err)
	}
}

func TestDeletedNodeIsTaken(t *testing.T) {
	tr := newTree(t)
	l := tr.leaf(t, nil)
	id := assign(t, l)
	hold(t, l, id)
	signals, err := l.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.conn.Delete(tr.path("forever", child("192.0.2.2:8080", int(id))), -1); err != nil {
		t.Fatal(err)
	}
	for range signals {
	}
	_, err = l.Load(t.Context(), id)
	isTaken(t, "load", err)
	if next := assign(t, l); next != id+1 {
		t.Errorf("worker ID %d, want %d", next, id+1)
	}
}

// TestSecondServerWithOurAddress has one of ours started twice by mistake.
func TestSecondServerWithOurAddress(t *testing.T) {
	tr := newTree(t)
	first, second := tr.leaf(t, nil), tr.leaf(t, nil)
	id := assign(t, first)
	hold(t, first, id)
	if got := assign(t, second); got != id {
		t.Fatalf("worker IDs %d and %d", id, got)
	}
	signals, err := second.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for range signals { // the first one's uploads
	}
	_, err = second.Load(t.Context(), id)
	isTaken(t, "load of the second", err)
	if _, err := first.Load(t.Context(), id); err != nil {
		t.Errorf("the first was disturbed: %v", err)
	}
}
