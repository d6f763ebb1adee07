package memory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// TestRegistry holds the registry against the definition of one; every client of a
// backend is the same Registry, since its state is nowhere else.
func TestRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(testing.TB) drivertest.RegistryBackend {
		r := memory.New().Registry()
		return drivertest.RegistryBackend{Open: func(testing.TB) worker.Registry { return r }}
	})
}

func TestRegistryClock(t *testing.T) {
	db := memory.New()
	stands := time.UnixMilli(1790000000123)
	wantClock := func(want time.Time) {
		t.Helper()
		if got, err := db.Registry().Clock(t.Context()); err != nil || !got.Equal(want) {
			t.Errorf("clock %v, %v, want %v", got, err, want)
		}
	}
	wantClock(time.Time{})
	db.Backend.SetClock(func() time.Time { return stands })
	wantClock(stands)
	db.Backend.SetClock(nil)
	wantClock(time.Time{})
}

// A restored snapshot takes back the later writes, and notifies the watchers of a changed cell.
func TestRestore(t *testing.T) {
	b := memory.NewBackend()
	key := func(name string) kv.Key { return kv.Key{Kind: kv.Workers, Name: name} }
	write := func(name string) {
		t.Helper()
		now, err := b.Get(t.Context(), key(name))
		if err == nil {
			_, err = b.Swap(t.Context(), now, now.Value+"x")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	write("b")
	before := b.Snapshot()
	write("b")
	write("c")
	told := make(map[string]<-chan struct{})
	for _, name := range []string{"a", "b", "c"} {
		var err error
		if told[name], err = b.Watch(t.Context(), key(name)); err != nil {
			t.Fatal(err)
		}
	}
	b.Restore(before)
	if diff := cmp.Diff(before, b.Snapshot()); diff != "" {
		t.Errorf("after the restore (-snapshot +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"a": false, "b": true, "c": true} {
		select {
		case <-told[name]:
			if !want {
				t.Errorf("%s was said to have changed", name)
			}
		default:
			if want {
				t.Errorf("no watcher was told of %s", name)
			}
		}
	}
}
