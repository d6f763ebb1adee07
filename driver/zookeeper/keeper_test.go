package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// A generator records the calls of its keeper.
type generator struct {
	begun  chan *worker.Lease
	sealed chan error
}

func (g *generator) Begin(l *worker.Lease) { g.begun <- l }

func (g *generator) Seal(why error) time.Time {
	select {
	case g.sealed <- why:
	default: // the test no longer looks
	}
	return time.Time{}
}

// keep runs a keeper on reg until t ends.
func keep(t *testing.T, reg worker.Registry) *generator {
	t.Helper()
	g := &generator{begun: make(chan *worker.Lease, 8), sealed: make(chan error, 64)}
	k, err := worker.NewKeeper(reg, &worker.Options{LeaseUsers: []worker.LeaseUser{g}})
	if err != nil {
		t.Fatal(err)
	}
	testserver.Background(t, k.Run)
	return g
}

func TestKeeperStopsWhenAJavaServerTakesOver(t *testing.T) {
	tr := newTree(t)
	g := keep(t, tr.leaf(t, nil))
	lease := <-g.begun
	if lease.Worker() == 0 {
		t.Error("worker 0 is in use")
	}
	for len(g.sealed) > 0 {
		<-g.sealed // from before the lease
	}
	j := startJava(t, tr, "192.0.2.2", "8080")
	if j.worker != lease.Worker() {
		t.Fatalf("the Java server is worker %d, want %d", j.worker, lease.Worker())
	}
	began := time.Now()
	for {
		if err := <-g.sealed; errors.Is(err, worker.ErrTaken) {
			break
		}
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("sealed only after %v, when the lease was due to be extended", took)
	}
}

func TestKeepersShareAPool(t *testing.T) {
	tr := newTree(t)
	tr.pool(t)
	used := map[int64]bool{}
	for range 3 {
		lease := <-keep(t, tr.pool(t)).begun
		if used[lease.Worker()] {
			t.Errorf("worker %d is used twice", lease.Worker())
		}
		used[lease.Worker()] = true
	}
}
