package snowflake_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

var _ leaf.Generator = (*snowflake.Node)(nil)

// inPresent runs a test in a bubble whose clock is after the epochs of the presets.
func inPresent(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch.Add(time.Hour)))
		test(t)
	})
}

// Nodes in sequence and in parallel share no ID, and hand their worker IDs back.
func TestOpen(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		registry := memory.New().Registry()
		seen := make(map[int64]bool)
		for range 3 {
			var nodes []*snowflake.Node
			for range 3 {
				n, err := snowflake.Open(t.Context(), registry, nil)
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, n)
				ranges, err := n.Take(t.Context(), nil, 5000)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range ranges {
					for id := r.Start; id < r.End; id++ {
						if seen[id] {
							t.Fatalf("ID %d was issued twice", id)
						}
						seen[id] = true
					}
				}
			}
			for _, n := range nodes {
				if err := n.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := n.Close(t.Context()); err != nil {
					t.Errorf("closed twice: %v", err)
				}
				if _, err := n.Next(t.Context()); !errors.Is(err, leaf.ErrNoLease) {
					t.Errorf("an ID of a closed node: %v", err)
				}
			}
		}
		records, err := registry.List(t.Context())
		if err != nil || len(records) != 3 {
			t.Fatalf("%d worker IDs were used, %v", len(records), err)
		}
		for _, r := range records {
			if r.Held() || time.Until(r.Horizon) > worker.DefaultMaxAhead {
				t.Errorf("not handed back: %+v", r)
			}
		}
	})
}

func TestNodeOfSeveralLayouts(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		leafLayout, uid := preset(t, "leaf"), preset(t, "uid")
		state, err := worker.OpenStateFile(filepath.Join(t.TempDir(), "lease")) // it bounds what runs ahead
		if err != nil {
			t.Fatal(err)
		}
		defer state.Close()
		opts := &snowflake.NodeOptions{Keeper: worker.Options{State: state}, Layouts: []snowflake.NodeLayout{
			{Name: "uid", Layout: uid, Options: snowflake.Options{MaxAhead: time.Minute}},
			{Name: "leaf", Layout: leafLayout},
			{Name: "also", Layout: leafLayout},
		}}
		n, err := snowflake.Open(t.Context(), memory.New().Registry(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close(t.Context())
		if n.Generator("leaf") != n.Generator("also") || n.Generator("leaf") == n.Generator("uid") || n.Generator("other") != nil {
			t.Error("layouts of equal values have one generator, others have their own")
		}
		id, err := n.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p, err := uid.Decode(id); err != nil || time.Since(p.Time).Abs() > time.Second || p.Worker != n.Keeper().Status().Worker {
			t.Errorf("the first layout's ID %d reads %+v, %v", id, p, err)
		}
		if _, err := n.Generator("uid").Take(t.Context(), nil, 40*8192); err != nil { // 40 of the 60 seconds
			t.Errorf("max_ahead of a layout is not the lease's: %v", err)
		}
	})
}

func TestOpenFails(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := snowflake.Open(ctx, memory.New().Registry(), &snowflake.NodeOptions{Layouts: make([]snowflake.NodeLayout, 1)})
		if !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("an empty layout: %v", err)
		}
		tiny := snowflake.Layout{Epoch: preset(t, "leaf").Epoch, Tick: time.Millisecond, TimeBits: 41, SequenceBits: 12}
		opts := &snowflake.NodeOptions{Layouts: []snowflake.NodeLayout{{Name: "tiny", Layout: tiny}}} // one worker ID
		registry := memory.New().Registry()
		first, err := snowflake.Open(ctx, registry, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close(t.Context())
		_, err = snowflake.Open(ctx, registry, opts)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, worker.ErrNoneFree) || !strings.Contains(err.Error(), "runs out at") {
			t.Errorf("no worker ID is free: %v", err)
		}
	})
}

// Two keepers of one generator would each hand back the other's times.
func TestStartTwice(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		registry := memory.New().Registry()
		n, err := snowflake.Open(t.Context(), registry, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.Start()
		time.Sleep(5 * time.Second)
		if records, err := registry.List(t.Context()); err != nil || len(records) != 1 {
			t.Errorf("worker IDs of one node: %+v, %v", records, err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two nodes on one state file would take each other for a dead process.
func TestNodesShareNoStateFile(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		state, err := worker.OpenStateFile(filepath.Join(t.TempDir(), "lease"))
		if err != nil {
			t.Fatal(err)
		}
		defer state.Close()
		registry, opts := memory.New().Registry(), &snowflake.NodeOptions{Keeper: worker.Options{State: state}}
		for range 2 { // one after the other they may
			n, err := snowflake.Open(t.Context(), registry, opts)
			if err != nil {
				t.Fatal(err)
			}
			if second, err := snowflake.Open(t.Context(), registry, opts); err == nil {
				t.Error("two nodes on one state file")
				_ = second.Close(t.Context())
			}
			if err := n.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A stuckRegistry answers no swap once it is stuck, until it is freed.
type stuckRegistry struct {
	worker.Registry
	stuck atomic.Bool
	freed chan struct{}
}

func (r *stuckRegistry) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	if r.stuck.Load() {
		<-r.freed
	}
	return r.Registry.Swap(ctx, old, new)
}

// A Close ends with its context, and the node still hands back.
func TestCloseEndsWithItsContext(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		reg := &stuckRegistry{Registry: memory.New().Registry(), freed: make(chan struct{})}
		n, err := snowflake.Open(t.Context(), reg, nil)
		if err != nil {
			t.Fatal(err)
		}
		reg.stuck.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a stuck registry: got error %v, want %v", err, context.DeadlineExceeded)
		}
		close(reg.freed)
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if records, err := reg.List(t.Context()); err != nil || len(records) != 1 || records[0].Held() {
			t.Errorf("the worker ID was not handed back: %v, %v", records, err)
		}
	})
}

// An unstarted node has nothing to close, and no other error becomes one of its worker ID.
func TestCloseBeforeStart(t *testing.T) {
	n, err := snowflake.NewNode(memory.New().Registry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
	for _, err := range []error{leaf.ErrClock, leaf.ErrOverflow} {
		if got := n.Explain(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// A node closed before its start gives its state file up, and does not start any more.
func TestStartAfterClose(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		state, err := worker.OpenStateFile(filepath.Join(t.TempDir(), "lease"))
		if err != nil {
			t.Fatal(err)
		}
		defer state.Close()
		registry, opts := memory.New().Registry(), &snowflake.NodeOptions{Keeper: worker.Options{State: state}}
		for range 2 {
			n, err := snowflake.NewNode(registry, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Close(t.Context()); err != nil {
				t.Error(err)
			}
			n.Start()
			time.Sleep(5 * time.Second)
			if _, err := n.Next(t.Context()); !errors.Is(err, leaf.ErrNoLease) {
				t.Errorf("an ID of a closed node: %v", err)
			}
		}
		if records, err := registry.List(t.Context()); err != nil || len(records) > 0 {
			t.Errorf("worker IDs of closed nodes: %+v, %v", records, err)
		}
	})
}

// Start and Close may come at once: the node then ends.
func TestStartWhileClosing(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		for range 20 {
			n, err := snowflake.NewNode(memory.New().Registry(), nil)
			if err != nil {
				t.Fatal(err)
			}
			go n.Start()
			if err := n.Close(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if _, err := n.Next(t.Context()); !errors.Is(err, leaf.ErrNoLease) {
				t.Errorf("an ID of a closed node: %v", err)
			}
		}
	})
}

// A node sets the layouts, the users and the reach of its lease itself.
func TestNodeSetsItsLease(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		registry := memory.New().Registry()
		n, err := snowflake.Open(t.Context(), registry, &snowflake.NodeOptions{Keeper: worker.Options{
			Layouts: []worker.ServedLayout{{Name: "x"}}, MaxAhead: time.Hour, LeastAhead: time.Hour, LeaseUsers: []worker.LeaseUser{nil},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close(t.Context())
		records, err := registry.List(t.Context())
		if err != nil || len(records) != 1 || len(records[0].Layouts) == 0 {
			t.Fatalf("got %+v, %v", records, err)
		}
		for _, l := range records[0].Layouts {
			if l.Name != "leaf" {
				t.Errorf("the layout %+v is on record", l)
			}
		}
		if host, pid, _ := strings.Cut(records[0].Owner, " pid "); host == "" || pid == "" {
			t.Errorf("the owner is %q", records[0].Owner)
		}
	})
}
