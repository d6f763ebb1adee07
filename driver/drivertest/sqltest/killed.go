package sqltest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A Server is one that a test kills and starts again.
type Server interface {
	Kill() error
	Start() error
}

// TestKilledStore kills a server under load and checks that it loses no acknowledged range. The
// store has the tags of [KilledTags].
func TestKilledStore(t *testing.T, server Server, s segment.Store) {
	ranges := make(map[string]*drivertest.Ranges)
	for _, tag := range KilledTags() {
		ranges[tag.Name] = &drivertest.Ranges{}
	}
	killUnderLoad(t, server, 8, 300, func(ctx context.Context, caller, call int) bool {
		tag := KilledTags()[caller%2].Name
		g, err := s.Advance(ctx, tag, int64(call%3)) // also by its own step
		if err == nil {
			ranges[tag].Add(g.Range)
		}
		return err == nil
	})
	for tag, r := range ranges {
		if err := r.Check(); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

// KilledTags is the tags of [TestKilledStore].
func KilledTags() []segment.Tag {
	return []segment.Tag{{Name: "a", MaxID: 1, Step: 10}, {Name: "b", MaxID: 1, Step: 10}}
}

// TestKilledRegistry kills a server at its work and checks that it keeps every acknowledged swap.
func TestKilledRegistry(t *testing.T, server Server, open func() worker.Registry) {
	registries := []worker.Registry{open(), open(), open()}
	var won Terms
	killUnderLoad(t, server, len(registries), 100, func(ctx context.Context, caller, _ int) bool {
		term, err := CountUp(ctx, registries[caller])
		if err == nil {
			won.Add(t, term)
		}
		return err == nil
	})
	if got, err := open().Load(t.Context(), 7); err != nil || got.Term < won.last {
		t.Errorf("the cell stands at term %d, %v, although term %d was won", got.Term, err, won.last)
	}
}

// killUnderLoad runs callers, and kills the server three times, each time after the given number of
// answered calls.
func killUnderLoad(t *testing.T, server Server, callers, calls int, served func(ctx context.Context, caller, call int) bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var count atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for call := 0; ctx.Err() == nil; call++ {
				if served(ctx, caller, call) {
					count.Add(1)
				}
			}
		})
	}
	defer wg.Wait()
	defer stop()
	await(t, &count, calls)
	for range 3 {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, &count, calls)
	}
}

// await waits until so many more calls were served.
func await(t *testing.T, served *atomic.Int64, more int) {
	t.Helper()
	want := served.Load() + int64(more)
	for deadline := time.Now().Add(30 * time.Second); served.Load() < want; {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls served, want %d: the store does not recover", served.Load(), want)
		}
		time.Sleep(time.Millisecond) // polls a counter; the event has no channel
	}
}
