package memory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// TestRegistry holds the registry against the definition of one; every client of a
// backend is the same Registry, since its state is nowhere else.
func TestRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(testing.TB) drivertest.RegistryBackend {
		r := memory.NewRegistry()
		return drivertest.RegistryBackend{Open: func(testing.TB) worker.Registry { return r }}
	})
}

func TestRegistryClock(t *testing.T) {
	r := memory.NewRegistry()
	stands := time.UnixMilli(1790000000123)
	wantClock := func(want time.Time) {
		t.Helper()
		if got, err := r.Clock(t.Context()); err != nil || !got.Equal(want) {
			t.Errorf("clock %v, %v, want %v", got, err, want)
		}
	}
	wantClock(time.Time{})
	r.SetClock(func() time.Time { return stands })
	wantClock(stands)
	r.SetClock(nil)
	wantClock(time.Time{})
}

// A restored snapshot takes back what was written since, and those who watch a cell
// that it changes are told.
func TestRegistryRestore(t *testing.T) {
	r := memory.NewRegistry()
	write := func(old, new worker.Record) {
		t.Helper()
		if err := r.Swap(t.Context(), old, new); err != nil {
			t.Fatal(err)
		}
	}
	one := worker.Record{Worker: 7, Term: 1, Layouts: []worker.Layout{{Name: "leaf"}}}
	two := worker.Record{Worker: 7, Term: 2}
	write(worker.Record{Worker: 6}, worker.Record{Worker: 6, Term: 5})
	write(worker.Record{Worker: 7}, one)
	before := r.Snapshot()
	write(one, two)
	write(worker.Record{Worker: 8}, worker.Record{Worker: 8, Term: 1})

	told := make(map[int64]<-chan struct{})
	for _, id := range []int64{6, 7, 8} {
		var err error
		if told[id], err = r.Watch(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	r.Restore(before)
	got, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("after the restore (-snapshot +got):\n%s", diff)
	}
	for id, want := range map[int64]bool{6: false, 7: true, 8: true} {
		select {
		case <-told[id]:
			if !want {
				t.Errorf("worker %d was said to have changed", id)
			}
		default:
			if want {
				t.Errorf("nobody was told of worker %d", id)
			}
		}
	}
	before[1].Layouts[0].Name = "scribbled over"
	if got, _ := r.Load(t.Context(), 7); got.Layouts[0].Name != "leaf" {
		t.Error("the registry shares its layouts with the snapshot")
	}
}
