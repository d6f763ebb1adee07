package drivertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

func newFaultyRegistry() *drivertest.FaultyRegistry {
	return &drivertest.FaultyRegistry{Registry: memory.New().Registry()}
}

// attempt makes a swap and discards the new version.
func attempt(ctx context.Context, r worker.Registry, old, new worker.Record) error {
	_, err := r.Swap(ctx, old, new)
	return err
}

// term is a record of worker 7.
func term(n int64) worker.Record { return worker.Record{Worker: 7, Term: n} }

func wantWritten(t *testing.T, f *drivertest.FaultyRegistry, want ...worker.Record) {
	t.Helper()
	if diff := cmp.Diff(want, f.Written()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

// TestFaultyRegistryIsTransparent holds a FaultyRegistry without a plan against the
// definition of a registry.
func TestFaultyRegistryIsTransparent(t *testing.T) {
	drivertest.TestRegistry(t, func(testing.TB) drivertest.RegistryBackend {
		r := memory.New().Registry()
		return drivertest.RegistryBackend{Open: func(testing.TB) worker.Registry { return &drivertest.FaultyRegistry{Registry: r} }}
	})
}

func TestFaultyRegistryFails(t *testing.T) {
	f := newFaultyRegistry()
	f.Next(drivertest.OpSwap, drivertest.Fault{Before: errBoom}, drivertest.Fault{After: errBoom}, drivertest.Fault{})
	for i, want := range []error{errBoom, errBoom, worker.ErrConflict, worker.ErrConflict} {
		if err := attempt(t.Context(), f, term(0), term(1)); !errors.Is(err, want) {
			t.Errorf("swap %d: got error %v, want %v", i, err, want)
		}
	}
	wantWritten(t, f, term(1))
	if got, err := f.Load(t.Context(), 7); err != nil || !got.Equal(term(1)) {
		t.Errorf("load: %v, %v", got, err)
	}
	f.Set(drivertest.Fault{After: errBoom})
	if got, err := f.Load(t.Context(), 7); !errors.Is(err, errBoom) || !got.Equal(worker.Record{}) {
		t.Errorf("load with a lost reply: %v, %v", got, err)
	}
	if got, err := f.List(t.Context()); !errors.Is(err, errBoom) || got != nil {
		t.Errorf("list with a lost reply: %v, %v", got, err)
	}
	if got, err := f.Clock(t.Context()); !errors.Is(err, errBoom) || !got.IsZero() {
		t.Errorf("clock with a lost reply: %v, %v", got, err)
	}
	for op, want := range map[drivertest.Op]int{drivertest.OpSwap: 4, drivertest.OpLoad: 2, drivertest.OpList: 1, drivertest.OpClock: 1} {
		if got := f.Calls(op); got != want {
			t.Errorf("%d calls of %s were counted, want %d", got, op, want)
		}
	}
}

func TestFaultyRegistryPlan(t *testing.T) {
	f := newFaultyRegistry()
	var seen []drivertest.RegistryCall
	f.Plan(func(c drivertest.RegistryCall) drivertest.Fault {
		seen = append(seen, c)
		return drivertest.Fault{}
	})
	_ = attempt(t.Context(), f, term(0), term(1))
	_, _ = f.Load(t.Context(), 7)
	_ = attempt(t.Context(), f, term(1), term(2))
	want := []drivertest.RegistryCall{
		{Op: drivertest.OpSwap, Worker: 7, Old: term(0), New: term(1), Seq: 1},
		{Op: drivertest.OpLoad, Worker: 7, Seq: 1},
		{Op: drivertest.OpSwap, Worker: 7, Old: term(1), New: term(2), Seq: 2},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestFaultyRegistryInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaultyRegistry()
		start := time.Now()
		wantAfter := func(what string, err, want error, after time.Duration) {
			t.Helper()
			if took := time.Since(start); !errors.Is(err, want) || took != after {
				t.Errorf("%s: got error %v after %v, want %v after %v", what, err, took, want, after)
			}
			start = time.Now()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f.Set(drivertest.Fault{Latency: time.Second})
		wantAfter("slow", attempt(ctx, f, term(0), term(1)), nil, time.Second)
		f.Set(drivertest.Fault{Mute: true})
		wantAfter("mute", attempt(ctx, f, term(1), term(2)), context.DeadlineExceeded, 59*time.Second)
		wantWritten(t, f, term(1), term(2))

		hold := make(chan struct{})
		f.Set(drivertest.Fault{Hold: hold})
		go func() {
			time.Sleep(time.Hour)
			close(hold)
		}()
		wantAfter("held", attempt(t.Context(), f, term(2), term(3)), nil, time.Hour)
	})
}

// A write that comes after its caller gave up, and a registry that loses its last
// writes, as the comments describe them.
func TestFaultyRegistryLateAndLost(t *testing.T) {
	behind := memory.New()
	f := &drivertest.FaultyRegistry{Registry: behind.Registry()}
	var held drivertest.RegistryCall
	f.Plan(func(c drivertest.RegistryCall) drivertest.Fault {
		held = c
		return drivertest.Fault{Before: errBoom}
	})
	if err := attempt(t.Context(), f, term(0), term(1)); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	f.Plan(nil)
	if err := attempt(t.Context(), behind.Registry(), held.Old, held.New); err != nil {
		t.Error(err)
	}
	before := behind.Backend.Snapshot()
	if err := attempt(t.Context(), f, term(1), term(2)); err != nil {
		t.Error(err)
	}
	behind.Backend.Restore(before)
	if got, err := f.Load(t.Context(), 7); err != nil || !got.Equal(term(1)) {
		t.Errorf("load: %v, %v", got, err)
	}
}
