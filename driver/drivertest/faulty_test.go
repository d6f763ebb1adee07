package drivertest_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

var errBoom = errors.New("boom")

// newFaulty is a Faulty over a store with the tag "order" at 1.
func newFaulty(t *testing.T) *drivertest.Faulty {
	t.Helper()
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	return &drivertest.Faulty{Store: store}
}

func granted(t *testing.T, f *drivertest.Faulty, want ...leaf.Range) {
	t.Helper()
	if diff := cmp.Diff(want, f.Granted("order")); diff != "" {
		t.Errorf("granted (-want +got):\n%s", diff)
	}
}

// TestFaultyIsTransparent holds a Faulty without a plan against the definition of a store.
func TestFaultyIsTransparent(t *testing.T) {
	drivertest.TestStore(t, func(testing.TB) drivertest.StoreBackend {
		store := memory.New().Store()
		return drivertest.StoreBackend{Open: func(testing.TB) segment.Store { return &drivertest.Faulty{Store: store} }}
	})
}

func TestFaultyFails(t *testing.T) {
	f := newFaulty(t)
	f.Next(drivertest.OpAdvance, drivertest.Fault{Before: errBoom}, drivertest.Fault{After: errBoom})
	var last segment.Grant
	for i, want := range []error{errBoom, errBoom, nil} {
		var err error
		if last, err = f.Advance(t.Context(), "order", 0); !errors.Is(err, want) {
			t.Errorf("call %d: got error %v, want %v", i, err, want)
		}
	}
	granted(t, f, leaf.Range{Start: 1, End: 11}, leaf.Range{Start: 11, End: 21})
	if n := f.Calls(drivertest.OpAdvance); n != 3 {
		t.Errorf("%d calls were counted, want 3", n)
	}
	f.Set(drivertest.Fault{After: errBoom})
	if err := f.Return(t.Context(), "order", last, 15); !errors.Is(err, errBoom) {
		t.Errorf("return: got error %v", err)
	}
	if diff := cmp.Diff([]leaf.Range{{Start: 15, End: 21}}, f.Returned("order")); diff != "" {
		t.Errorf("returned (-want +got):\n%s", diff)
	}
	f.Set(drivertest.Fault{})
	if got, err := f.Advance(t.Context(), "order", 0); err != nil || got.Range.Start != 15 {
		t.Errorf("after the return: got %v, %v", got.Range, err)
	}
}

func TestFaultyPlanSeesCalls(t *testing.T) {
	f := newFaulty(t)
	var seen []drivertest.Call
	f.Plan(func(c drivertest.Call) drivertest.Fault {
		seen = append(seen, c)
		return drivertest.Fault{Before: errBoom}
	})
	_, _ = f.Advance(t.Context(), "order", 3)
	_ = f.Return(t.Context(), "order", segment.Grant{}, 1)
	_, _ = f.Advance(t.Context(), "user", 0)
	_ = f.Delete(t.Context(), "order")
	want := []drivertest.Call{
		{Op: drivertest.OpAdvance, Tag: "order", N: 3, Seq: 1},
		{Op: drivertest.OpReturn, Tag: "order", Seq: 1},
		{Op: drivertest.OpAdvance, Tag: "user", Seq: 2},
		{Op: drivertest.OpCatalog, Tag: "order", Seq: 1},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
}

func TestFaultyTags(t *testing.T) {
	f := newFaulty(t)
	for _, c := range []struct {
		fault drivertest.Fault
		tags  int
		err   error
	}{
		{drivertest.Fault{}, 1, nil},
		{drivertest.Fault{Before: errBoom}, 0, errBoom},
		{drivertest.Fault{After: errBoom}, 1, errBoom},
	} {
		f.Set(c.fault)
		if n, err := count(f.Tags(t.Context())); n != c.tags || !errors.Is(err, c.err) {
			t.Errorf("%+v: listed %d tags, error %v", c.fault, n, err)
		}
		for range f.Tags(t.Context()) {
			break
		}
	}
}

func count(tags iter.Seq2[segment.Tag, error]) (n int, err error) {
	for _, e := range tags {
		if err = e; err == nil {
			n++
		}
	}
	return n, err
}

func TestFaultyTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t)
		f.Set(drivertest.Fault{Latency: time.Hour})
		start := time.Now()
		if _, err := f.Advance(t.Context(), "order", 0); err != nil || time.Since(start) != time.Hour {
			t.Errorf("took %v, error %v", time.Since(start), err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.Advance(short, "order", 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("took %v, error %v", time.Since(start), err)
		}
		granted(t, f, leaf.Range{Start: 1, End: 11})
	})
}

func TestFaultyHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t)
		release := make(chan struct{})
		f.Set(drivertest.Fault{Hold: release})
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.Advance(short, "order", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("held beyond its context: error %v", err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := f.Advance(t.Context(), "order", 0)
			done <- err
		}()
		synctest.Wait()
		granted(t, f)
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		granted(t, f, leaf.Range{Start: 1, End: 11})
	})
}

func TestFaultyMutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t)
		f.Next(drivertest.OpAdvance, drivertest.Fault{Mute: true})
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.Advance(short, "order", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		granted(t, f, leaf.Range{Start: 1, End: 11})
	})
}

func TestFaultyWithoutOptionalParts(t *testing.T) {
	f := &drivertest.Faulty{Store: struct{ segment.Store }{memory.New().Store()}}
	if err := f.Return(t.Context(), "order", segment.Grant{}, 1); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("Return: got error %v", err)
	}
	if err := f.Create(t.Context(), segment.Tag{Name: "order", Step: 1}); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("Create: got error %v", err)
	}
}
