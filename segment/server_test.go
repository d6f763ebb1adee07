package segment_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// A set returns loans to the buffer of their tag, and of no other.
func TestSetReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		create(t, store, "other", 1, 1000)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		s := set.Server()
		g, err := s.Advance(t.Context(), "order", 10, "")
		if err != nil || g.Range != (leaf.Range{Start: 1, End: 11}) {
			t.Fatalf("got %+v, %v", g, err)
		}
		wantError(t, s.Return(t.Context(), "none", g, 5), leaf.ErrUnknownTag)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, s.Return(ended, "order", g, 5), context.Canceled)
		if _, err := set.Next(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		wantError(t, s.Return(t.Context(), "other", g, 5), leaf.ErrRegression)
		err = s.Return(t.Context(), "order", g, 11)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), "[11, 11) is not an end of [1, 11)") {
			t.Errorf("nothing: %v", err)
		}
		wantError(t, s.Return(t.Context(), "order", g, 5), nil)
		if id, err := set.Next(t.Context(), "order"); id != 5 || err != nil {
			t.Errorf("got %d, %v, want 5", id, err)
		}
		wantError(t, set.Close(t.Context()), nil)
		wantError(t, s.Return(t.Context(), "order", g, 5), leaf.ErrClosed)
	})
}

// A set finds the figures of a used tag, and knows how far it went.
func TestSetOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &marks{high: map[string]int64{"order": 40, "old": 7}}
		set := segment.NewSet(newStore(t, 50, 1000), &segment.SetOptions{Options: segment.Options{Memory: memory}})
		defer set.Close(t.Context())
		if _, ok := set.Server().Of("order"); ok {
			t.Error("an unused tag has figures")
		}
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st, ok := set.Server().Of("order"); !ok || st.Tag != "order" || st.Issued != 1 || len(st.Segments) == 0 {
			t.Errorf("got %+v, %v", st, ok)
		}
		if n := set.Server().Known("old"); n != 7 {
			t.Errorf("the memory knows %d", n)
		}
		if n := set.Server().Known("none"); n != 0 {
			t.Errorf("the memory knows %d of an unknown tag", n)
		}
	})
}

// marks is a memory with one mark of two sources for each tag.
type marks struct{ high map[string]int64 }

func (m *marks) Recall(tag string) map[string]segment.Mark {
	if m.high[tag] == 0 {
		return nil
	}
	return map[string]segment.Mark{"a": {High: m.high[tag]}, "b": {High: m.high[tag] - 3}}
}
func (m *marks) Remember(string, string, segment.Mark) error { return nil }
func (m *marks) Forget(string) error                         { return errDown }

// An unfit store matters to operators once a used tag has no stock, or no tag was used yet.
func TestUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		create(t, store, "other", 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second})
		defer set.Close(t.Context())
		<-set.Ready()
		unfit := func(want bool) {
			t.Helper()
			if err := set.Server().Unfit(); (err != nil) != want {
				t.Errorf("unfit: %v, want %v", err, want)
			}
		}
		unfit(false)
		store.Set(drivertest.Fault{Before: errDown})
		time.Sleep(10 * time.Second)
		unfit(false) // it is only down
		store.Set(drivertest.Fault{Before: fmt.Errorf("%w: its data is of a newer release", leaf.ErrUnsupported)})
		time.Sleep(20 * time.Second)
		unfit(true) // every stock is empty
		store.Set(drivertest.Fault{})
		time.Sleep(20 * time.Second)
		unfit(false)
		for _, tag := range []string{"order", "other"} {
			if _, err := set.Next(t.Context(), tag); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		store.Set(drivertest.Fault{Before: fmt.Errorf("%w: its data is of a newer release", leaf.ErrUnsupported)})
		time.Sleep(20 * time.Second)
		unfit(false) // all have stock
		for _, err := set.Next(t.Context(), "other"); err == nil; {
			_, err = set.Next(t.Context(), "other")
		}
		unfit(true)
	})
}

// What Forget cannot forget is an error.
func TestForgetOfAMemoryThatFails(t *testing.T) {
	set := segment.NewSet(newStore(t, 1, 10), &segment.SetOptions{Options: segment.Options{Memory: &marks{}}})
	defer set.Close(t.Context())
	wantError(t, set.Server().Forget("order", func() error { return nil }), errDown)
}

// A set that lowers, creates or deletes nothing tells of the first failed call of each tag only, and of
// others at most one a second.
func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := newStore(t, 1, 10)
		opts := segment.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Wait: 100 * time.Millisecond}
		set := segment.NewSet(store, &segment.SetOptions{Options: opts, CheckInterval: time.Hour})
		defer set.Close(t.Context())
		<-set.Ready()
		store.Set(drivertest.Fault{Before: errDown})
		for _, tag := range []string{"order", "a", "b", "c"} {
			_, _ = set.Next(t.Context(), tag)
		}
		time.Sleep(2 * time.Second)
		_, _ = set.Next(t.Context(), "d")
		text := log.String()
		if n := strings.Count(text, "store call failed"); n < 2 || n > 3 || !strings.Contains(text, "tag=order") {
			t.Errorf("%d lines:\n%s", n, text)
		}
		if !strings.Contains(text, "tag=d") || !strings.Contains(text, "other_tags=3") || strings.Contains(text, "other_tags=0") {
			t.Errorf("the others are not counted:\n%s", text)
		}
	})
}

// A failed lift is no success: the buffer neither issues nor keeps the grant, each failure counts
// once, and the next call lifts to the same floor or above.
func TestFailedLiftCountsAsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tickets{Faulty: newStore(t, 1, 1)}
		b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 50_000, Wait: 100 * time.Millisecond})
		defer b.Close(t.Context())
		for range 20 {
			if _, err := b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		high := b.Stats().Issued + b.Stats().Stock
		if _, err := b.Take(t.Context(), nil, int(b.Stats().Stock)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		loseWrites(t, store.Faulty, 7)
		store.down.Store(true)
		before := b.Stats()
		for range int(before.Stock) + 1 {
			if _, err := b.Next(t.Context()); err != nil {
				wantError(t, err, errDown)
			}
		}
		time.Sleep(time.Second)
		st := b.Stats()
		if st.Failures == 0 || st.Refills != before.Refills || st.Stock != 0 || !errors.Is(st.Err, errDown) || st.Lost == 0 {
			t.Errorf("after failed lifts: %+v", st)
		}
		store.down.Store(false)
		time.Sleep(10 * time.Second)
		if id, err := b.Next(t.Context()); err != nil || id < high+50_000 {
			t.Errorf("got %d, %v, want one above %d", id, err, high+50_000)
		}
		for i := 1; i < len(store.lifts); i++ {
			if store.lifts[i] < store.lifts[0] {
				t.Errorf("lifts to %v", store.lifts)
			}
		}
	})
}

// A buffer without a grant leaves memory once its callers stop asking, and no earlier.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour, Options: segment.Options{Wait: 100 * time.Millisecond}})
		defer set.Close(t.Context())
		<-set.Ready()
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		store.Set(drivertest.Fault{Before: errDown})
		for range 20 {
			_, err := set.Next(t.Context(), "none")
			wantError(t, err, leaf.ErrExhausted)
			time.Sleep(200 * time.Millisecond)
			if n := len(set.Stats()); n != 2 {
				t.Fatalf("%d tags in memory while callers ask for 2", n)
			}
		}
		time.Sleep(10 * time.Second)
		if st := set.Stats(); len(st) != 1 || st[0].Tag != "order" {
			t.Errorf("%d tags in memory, of which one was granted IDs", len(st))
		}
	})
}
