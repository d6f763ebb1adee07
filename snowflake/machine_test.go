package snowflake_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// lockAfterwards stands for processes of one machine that have a worker ID one after the other.
func lockAfterwards(worker.ServedLayout, int64) (io.Closer, error) { return io.NopCloser(nil), nil }

// A generator that begins ahead of the clock, because another process may have had the worker ID, has
// a lease that reaches beyond.
func TestLeaseOfOneMachineIsLongEnough(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		uid, _ := snowflake.Preset("uid")
		const ahead = time.Minute
		n, err := snowflake.Open(t.Context(), memory.New().Registry(), &snowflake.NodeOptions{
			Layouts: []snowflake.NodeLayout{{Name: "uid", Layout: uid, Options: snowflake.Options{MaxAhead: ahead, Wait: time.Second}}},
			Keeper:  worker.Options{Horizon: ahead, Lock: lockAfterwards},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if _, err := n.Generator("uid").Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Processes of one machine with registries of their own have a worker ID one after the other, and
// share no ID, though each of their generators runs ahead of the clock as far as it may, and the next
// process begins at once.
func TestOneMachineManyRegistries(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		const ahead = 10 * time.Second
		uid, _ := snowflake.Preset("uid")
		leafLayout, _ := snowflake.Preset("leaf")
		opts := snowflake.NodeOptions{
			Layouts: []snowflake.NodeLayout{
				{Name: "uid", Layout: uid, Options: snowflake.Options{MaxAhead: ahead, Wait: 2 * ahead}},
				{Name: "leaf", Layout: leafLayout, Options: snowflake.Options{MaxAhead: -1, Wait: 2 * ahead}},
			},
			Keeper: worker.Options{Lock: lockAfterwards},
		}
		all := map[string][]leaf.Range{}
		for range 3 {
			n, err := snowflake.Open(t.Context(), memory.New().Registry(), &opts)
			if err != nil {
				t.Fatal(err)
			}
			for name, count := range map[string]int64{"uid": int64(ahead/time.Second) * uid.MaxSequence(), "leaf": 2 * leafLayout.MaxSequence()} {
				ranges, err := n.Generator(name).Take(t.Context(), nil, int(count))
				if err != nil {
					t.Fatal(err)
				}
				all[name] = append(all[name], ranges...)
			}
			if err := n.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for name, ranges := range all {
			checkDistinct(t, name, ranges)
		}
	})
}

func checkDistinct(t *testing.T, name string, ranges []leaf.Range) {
	t.Helper()
	slices.SortFunc(ranges, func(a, b leaf.Range) int { return cmp.Compare(a.Start, b.Start) })
	for i, r := range ranges[1:] {
		if r.Start < ranges[i].End {
			t.Errorf("IDs of %s from %d on came twice", name, r.Start)
		}
	}
}

// A switchedRegistry can be away.
type switchedRegistry struct {
	worker.Registry
	away atomic.Bool
}

func (r *switchedRegistry) List(ctx context.Context) ([]worker.Record, error) {
	if r.away.Load() {
		return nil, errors.New("away")
	}
	return r.Registry.List(ctx)
}

func (r *switchedRegistry) Load(ctx context.Context, id int64) (worker.Record, error) {
	if r.away.Load() {
		return worker.Record{}, errors.New("away")
	}
	return r.Registry.Load(ctx, id)
}

// A process that continues the lease of its state file begins after what a process with another
// registry issued under the worker ID in the meantime.
func TestOneMachineRegistryAway(t *testing.T) {
	inPresent(t, func(t *testing.T) {
		const ahead = 10 * time.Second
		uid, _ := snowflake.Preset("uid")
		path := filepath.Join(t.TempDir(), "lease")
		first, second := &switchedRegistry{Registry: memory.New().Registry()}, memory.New().Registry()
		var all []leaf.Range
		issue := func(reg worker.Registry, path string) {
			o := snowflake.NodeOptions{
				Layouts: []snowflake.NodeLayout{{Name: "uid", Layout: uid, Options: snowflake.Options{MaxAhead: ahead, Wait: 2 * ahead}}},
				Keeper:  worker.Options{Lock: lockAfterwards},
			}
			if path != "" {
				var err error
				if o.Keeper.State, err = worker.OpenStateFile(path); err != nil {
					t.Fatal(err)
				}
				defer o.Keeper.State.Close()
			}
			n, err := snowflake.Open(t.Context(), reg, &o)
			if err != nil {
				t.Fatal(err)
			}
			ranges, err := n.Take(t.Context(), nil, int(ahead/time.Second)*int(uid.MaxSequence()))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ranges...)
			first.away.Store(true) // it does not get its worker ID back
			_ = n.Close(t.Context())
		}
		issue(first, path)
		time.Sleep(2 * ahead)
		issue(second, "")
		issue(first, path)
		checkDistinct(t, "uid", all)
	})
}
