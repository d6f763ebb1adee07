package etcd_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// A backup is a copy of the data of an etcd with one member. To clients it looks like a restored
// snapshot: with the old keys and revisions, and the same cluster ID.
type backup struct {
	cluster     *testserver.EtcdCluster
	live, saved string
}

// save copies the data. Clients see a restart that loses nothing.
func save(t *testing.T, c *testserver.EtcdCluster) *backup {
	t.Helper()
	b := &backup{c, filepath.Join(c.Dir, "m0"), filepath.Join(t.TempDir(), "saved")}
	b.replace(t, b.live, b.saved)
	return b
}

// restore puts the copy in place.
func (b *backup) restore(t *testing.T) { t.Helper(); b.replace(t, b.saved, b.live) }

func (b *backup) replace(t *testing.T, from, to string) {
	t.Helper()
	if err := b.cluster.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)), b.cluster.Restart(0)); err != nil {
		t.Fatal(err)
	}
}

// answered makes calls until one is answered: after a restart of etcd connections are refused
// first.
func answered[T any](t *testing.T, call func(context.Context) (T, error)) T {
	t.Helper()
	ctx := within(t, 20*time.Second)
	for {
		got, err := call(ctx)
		if err == nil {
			return got
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func epoch(t *testing.T, r *kv.Registry) worker.ServerEpoch {
	t.Helper()
	epoch, err := r.ServerEpoch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

// A client notices a restored etcd at its first answer, and from then on reports possible losses. A
// lossless restart, or a slow listing, has no such effect.
func TestRevisionGoesBack(t *testing.T) {
	c, log := testserver.Etcd(t, nil), new(testserver.Output)
	o := newOptions()
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	r := newRegistry(t, c, o)(t)
	b := save(t, c)
	old := worker.Record{Worker: 7}
	for term := range int64(20) {
		next := worker.Record{Worker: 7, Term: term + 1, Instance: worker.NewInstance()}
		if _, err := r.Swap(t.Context(), old, next); err != nil {
			t.Fatal(err)
		}
		old = next
	}
	save(t, c)
	answered(t, r.List)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := r.List(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := epoch(t, r); got != (worker.ServerEpoch{}) {
		t.Errorf("before: got %+v, want an etcd that loses nothing", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	noticed, err := r.Watch(ctx, 7)
	if err != nil {
		t.Fatal(err)
	}
	b.restore(t)
	select {
	case <-noticed:
	case <-time.After(20 * time.Second):
		t.Error("the watch did not notice")
	}
	if found := answered(t, r.List); len(found) > 0 {
		t.Errorf("got %+v: nothing was lost", found)
	}
	if got := epoch(t, r); got != (worker.ServerEpoch{Lossy: true}) {
		t.Errorf("after: got %+v, want an etcd that loses writes", got)
	}
	if n := strings.Count(log.String(), "revision went back"); n != 1 {
		t.Errorf("%d lines say that the revision went back, want 1:\n%s", n, log)
	}
	if got := epoch(t, openRegistry(t, c.Endpoints(), o)); got.Lossy {
		t.Error("a new client has seen no revision that was higher")
	}
}

// A worker ID claimed after the backup is free in the restored registry. A running process does not
// take it: its claim waits until the holder has noticed.
func TestClaimAfterRestore(t *testing.T) {
	c, o := testserver.Etcd(t, nil), newOptions()
	open := newRegistry(t, c, o)
	run := func(r worker.Registry, owner string) *worker.Keeper {
		k, err := worker.NewKeeper(r, &worker.Options{Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = k.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		return k
	}
	await := func(what string, k *worker.Keeper, done func(worker.Status) bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !done(k.Status()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, k.Status())
			}
		}
	}
	other := open(t)
	b := save(t, c)
	holder := run(open(t), "holder")
	await("the first claim", holder, func(s worker.Status) bool { return s.Held && s.Err == nil })
	answered(t, other.List)
	b.restore(t)
	late := run(other, "late")
	await("the claim after the restore", late, func(s worker.Status) bool {
		if s.Held && late.Err() == nil {
			t.Fatalf("worker ID %d was dealt at once", s.Worker)
		}
		return errors.Is(s.Err, worker.ErrWaiting)
	})
	await("the holder", holder, func(s worker.Status) bool { return s.PutBacks+s.Lost > 0 })
}
