package mysql

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/worker"
)

// A brokenTable answers an insert as the test wants; every insert adds a row.
type brokenTable struct {
	nodeStore
	rows    int64
	answers []error // of the first inserts
	key     int64   // the retrieved key; 0: no key
	highest int64   // the ID of the latest row
	forgets bool
	hangs   bool
}

func (b *brokenTable) insert(context.Context, Node, string) (int64, error) {
	b.rows++
	if int(b.rows) <= len(b.answers) {
		return 0, b.answers[b.rows-1]
	}
	return b.key * b.rows, nil
}

func (b *brokenTable) latest(ctx context.Context, _ int) ([]worker.Start, error) {
	if b.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []worker.Start{{Worker: b.highest}}, nil
}

func (b *brokenTable) layouts(context.Context) ([]worker.Record, error)         { return nil, nil }
func (b *brokenTable) keep(context.Context, int64, []worker.ServedLayout) error { return nil }

func (b *brokenTable) clock(context.Context) (time.Time, error) { return time.Now(), nil }
func (b *brokenTable) ServerEpoch(context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{Lossy: b.forgets}, nil
}
func (b *brokenTable) Explain(err error) error { return err }
func (b *brokenTable) nodes() *Nodes {
	return newNodes(b, &NodesOptions{Node: Node{Host: "h", Port: "p"}})
}

// A row whose ID was not heard of is never used, and costs no more than itself.
func TestNodesAnswerLost(t *testing.T) {
	lost := errors.New("the connection broke")
	b := &brokenTable{answers: []error{lost, lost}, key: 1}
	n := b.nodes()
	for range 2 {
		if id, err := n.Assign(t.Context(), 100); !errors.Is(err, lost) {
			t.Errorf("Assign: %d, %v", id, err)
		}
	}
	for range 2 {
		if id, err := n.Assign(t.Context(), 100); id != 3 || err != nil {
			t.Errorf("Assign: %d, %v, want 3", id, err)
		}
	}
	if b.rows != 3 {
		t.Errorf("%d rows, want 3", b.rows)
	}
}

// If the driver cannot retrieve the key, it is 0 in every process: no process may use it.
func TestNodesKeyNotRetrieved(t *testing.T) {
	for _, key := range []int64{0, -1} {
		b := &brokenTable{key: key}
		n := b.nodes()
		for range 3 {
			if id, err := n.Assign(t.Context(), 100); !errors.Is(err, leaf.ErrUnsupported) {
				t.Errorf("key %d: Assign: %d, %v, want ErrUnsupported", key, id, err)
			}
		}
		if b.rows != 1 {
			t.Errorf("key %d: %d rows, want one however often it is asked", key, b.rows)
		}
	}
}

// A row shows that somebody set the counter back, for example by restoring a backup.
func TestNodesCounterBehind(t *testing.T) {
	b := &brokenTable{key: 2, highest: 2}
	n := b.nodes()
	for range 3 {
		if id, err := n.Assign(t.Context(), 100); !errors.Is(err, leaf.ErrRegression) {
			t.Errorf("Assign: %d, %v, want ErrRegression", id, err)
		}
	}
	if b.rows != 1 {
		t.Errorf("%d rows, want one however often it is asked", b.rows)
	}
}

func TestNodesWarnOfLossyDatabases(t *testing.T) {
	for _, lossy := range []bool{true, false} {
		var log strings.Builder
		n := newNodes(&brokenTable{key: 1, forgets: lossy}, &NodesOptions{
			Options: sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, Node: Node{Host: "h", Port: "p"},
		})
		if _, err := n.Assign(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "deal their worker IDs again"); got != lossy {
			t.Errorf("warned: %v, want %v:\n%s", got, lossy, &log)
		}
	}
}

// A keeper holds its worker ID through any failure of the database. The same process always gets
// the same ID.
func TestNodesUnderAKeeper(t *testing.T) {
	b := &brokenTable{key: 9}
	n := b.nodes()
	for range 2 {
		k, err := worker.NewKeeper(n, &worker.Options{Extend: 10 * time.Millisecond, Horizon: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		deadline := time.Now().Add(10 * time.Second)
		held := func() time.Time {
			for ; time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if s := k.Status(); s.Held && s.Worker == 9 && s.Err == nil {
					return s.Extended
				}
			}
			t.Fatalf("not held: %+v", k.Status())
			return time.Time{}
		}
		for first := held(); !held().After(first); {
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if b.rows != 1 {
		t.Errorf("%d rows, want 1", b.rows)
	}
}

// A hanging database does not hold up a process with a worker ID.
func TestNodesClockHangs(t *testing.T) {
	b := &brokenTable{key: 1}
	n := b.nodes()
	if _, err := n.Assign(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	b.hangs = true
	start := time.Now()
	if now, err := n.Clock(t.Context()); err != nil || !now.IsZero() || time.Since(start) > 3*clockTimeout {
		t.Errorf("clock: %v, %v after %v", now, err, time.Since(start))
	}
}
