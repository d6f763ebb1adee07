package segment_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

func create(t testing.TB, store segment.Catalog, tag string, maxID, step int64) {
	t.Helper()
	if err := store.Create(t.Context(), segment.Tag{Name: tag, MaxID: maxID, Step: step}); err != nil {
		t.Fatal(err)
	}
}

func TestSetServesEveryTag(t *testing.T) {
	store := memory.New().Store()
	for i := range 50 {
		create(t, store, fmt.Sprintf("tag-%d", i), int64(i), 10)
	}
	set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Wait: time.Minute}}) // a busy machine
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for want := int64(i); want < int64(i)+300; want++ {
				if id, err := set.Next(t.Context(), fmt.Sprintf("tag-%d", i)); err != nil || id != want {
					t.Errorf("got %d, %v; want %d", id, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
	stats := set.Stats()
	if len(stats) != 50 || stats[1].Tag != "tag-1" || stats[2].Tag != "tag-10" || stats[1].Issued != 300 {
		t.Errorf("stats: %+v", stats[:3])
	}
	if err := set.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := set.Next(t.Context(), "tag-1")
	wantError(t, err, leaf.ErrClosed)
	_, err = set.Take(t.Context(), "another", nil, 1)
	wantError(t, err, leaf.ErrClosed)
	for tag, err := range store.Tags(t.Context()) {
		var i int64
		if _, scan := fmt.Sscanf(tag.Name, "tag-%d", &i); scan != nil || err != nil || tag.MaxID != i+300 {
			t.Errorf("after the stop %s stands at %d, want %d (%v)", tag.Name, tag.MaxID, i+300, err)
		}
	}
}

func TestSetRefusesBadNames(t *testing.T) {
	store := newStore(t, 1, 10)
	set := segment.NewSet(store, nil)
	defer set.Close(t.Context())
	for _, name := range []string{"", "a\x00b", "a\nb", "\xff", fmt.Sprintf("%0129d", 0)} {
		_, err := set.Next(t.Context(), name)
		wantError(t, err, leaf.ErrInvalid)
		_, err = set.Take(t.Context(), name, nil, 5)
		wantError(t, err, leaf.ErrInvalid)
	}
	if n := store.Calls(drivertest.OpAdvance); n != 0 {
		t.Errorf("%d calls to the store for bad names", n)
	}
}

// A set asks for an unknown tag once a second, however often callers want it. The tag is usable at
// most a second after its creation.
func TestUnknownTagIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		for range 500 {
			_, err := set.Next(t.Context(), "late")
			wantError(t, err, leaf.ErrUnknownTag)
			time.Sleep(10 * time.Millisecond)
		}
		if n := store.Calls(drivertest.OpAdvance); n < 4 || n > 6 {
			t.Errorf("%d calls to the store in 5 s", n)
		}
		if n := len(set.Stats()); n > 1 {
			t.Errorf("%d tags in memory", n)
		}
		create(t, store, "late", 7, 10)
		time.Sleep(time.Second)
		if id, err := set.Next(t.Context(), "late"); err != nil || id != 7 {
			t.Errorf("got %d, %v", id, err)
		}
	})
}

// Removed tags are noticed within a minute, all of them when the table is emptied;
// others go on.
func TestRemovedTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		create(t, store, "gone", 1, 1000)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		use := func(tag string) error {
			_, err := set.Next(t.Context(), tag)
			return err
		}
		for _, tag := range []string{"order", "gone"} {
			if err := use(tag); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(tag string) {
			if err := store.Delete(t.Context(), tag); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		remove("gone")
		wantError(t, use("gone"), leaf.ErrUnknownTag)
		if err := use("order"); err != nil {
			t.Error(err)
		}
		remove("order")
		wantError(t, use("order"), leaf.ErrUnknownTag)
	})
}

// An interrupted listing says nothing about the tags behind the interruption.
func TestFailedListingRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		store.Set(drivertest.Fault{Before: errDown})
		time.Sleep(5 * time.Minute)
		if id, err := set.Next(t.Context(), "order"); err != nil || id != 2 {
			t.Errorf("got %d, %v", id, err)
		}
	})
}

// Deleting and creating a tag through the set is no lost write.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		memory := notes{}
		set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Memory: memory}})
		defer set.Close(t.Context())
		for range 5 {
			if _, err := set.Next(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		}
		err := set.Server().Forget("order", func() error {
			if _, err := set.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrExhausted) {
				t.Errorf("while the counter is being changed: %v", err)
			}
			return store.Delete(t.Context(), "order")
		})
		if err != nil {
			t.Fatal(err)
		}
		create(t, store, "order", 1, 1000)
		if id, err := set.Next(t.Context(), "order"); err != nil || id != 1001 { // where the deleted counter stood
			t.Errorf("got %d, %v; want 1001", id, err)
		}
	})
}

// During a change of any length, with any other changes, the set issues nothing of the tag.
func TestForgetTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Memory: notes{}}})
		defer set.Close(t.Context())
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		var changing atomic.Bool
		change := func() error {
			changing.Store(true)
			time.Sleep(45 * time.Second) // longer than between two looks at the store
			changing.Store(false)
			return nil
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = set.Server().Forget("order", change) })
		wg.Go(func() {
			time.Sleep(time.Second)
			_ = set.Server().Forget("order", func() error { return nil })
		})
		for range 6000 {
			if id, err := set.Next(t.Context(), "order"); err == nil && changing.Load() {
				t.Fatalf("issued %d while the counter was being changed", id)
			}
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
	})
}

// What cannot be changed is as it was, and is remembered.
func TestForgetFails(t *testing.T) {
	store := newStore(t, 1, 1000)
	memory := notes{}
	set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Memory: memory}})
	defer set.Close(t.Context())
	for want := range int64(3) {
		if id, err := set.Next(t.Context(), "order"); err != nil || id < want {
			t.Errorf("got %d, %v", id, err)
		}
		wantError(t, set.Server().Forget("order", func() error { return errDown }), errDown)
		if memory["order"][""].High == 0 {
			t.Error("forgotten")
		}
	}
}

// Tags that callers want while the store is down do not stay in memory for ever.
func TestTagsOfADeadStoreAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		store.Set(drivertest.Fault{Before: errDown})
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		for i := range 500 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := set.Next(ctx, fmt.Sprint(i))
			cancel()
			wantError(t, err, context.DeadlineExceeded)
		}
		time.Sleep(5 * time.Second)
		if n := len(set.Stats()); n > 0 {
			t.Errorf("%d tags in memory", n)
		}
	})
}

// The set logs a problem of the store once, and again when it changes.
func TestStoreErr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		opts := segment.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		set := segment.NewSet(store, &segment.SetOptions{Options: opts})
		defer set.Close(t.Context())
		time.Sleep(time.Minute)
		wantError(t, set.Server().StoreErr(), errDown)
		store.Set(drivertest.Fault{Before: errors.New("no table")})
		time.Sleep(time.Minute)
		store.Set(drivertest.Fault{})
		time.Sleep(time.Minute)
		if err := set.Server().StoreErr(); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "store is down") || !strings.Contains(lines[1], "no table") ||
			!strings.Contains(lines[2], "is available again") {
			t.Errorf("log:\n%s", &log)
		}
	})
}

// Once Close has returned no caller gets an ID.
func TestClosedSetIssuesNothing(t *testing.T) {
	for range 200 {
		set := segment.NewSet(newStore(t, 1, 1000), nil)
		var closed atomic.Bool
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				late := closed.Load()
				for range 50 {
					if id, err := set.Next(t.Context(), "order"); err == nil && late {
						t.Errorf("got %d from a closed set", id)
					}
					late = closed.Load()
				}
			})
		}
		if err := set.Close(t.Context()); err != nil {
			t.Error(err)
		}
		closed.Store(true)
		wg.Wait()
	}
}

// However many tags want a range at once, calls in flight are bounded.
func TestCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New().Store()
		for i := range 100 {
			create(t, inner, fmt.Sprint(i), 1, 10)
		}
		store := &counting{Store: inner}
		set := segment.NewSet(store, &segment.SetOptions{MaxCalls: 7})
		defer set.Close(t.Context())
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := set.Next(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if store.most > 7 || store.most < 3 { // possibly unknown tags get half of them
			t.Errorf("%d calls in flight, the bound is 7", store.most)
		}
	})
}

// counting records the highest number of concurrent calls.
type counting struct {
	segment.Store
	mu        sync.Mutex
	now, most int
}

func (c *counting) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	c.add(1)
	defer c.add(-1)
	time.Sleep(20 * time.Millisecond)
	return c.Store.Advance(ctx, tag, n)
}

func (c *counting) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

// Ready tells when the store first answers.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		time.Sleep(time.Minute)
		select {
		case <-set.Ready():
			t.Error("ready without a store")
		default:
		}
		store.Set(drivertest.Fault{})
		time.Sleep(time.Second)
		<-set.Ready()
	})
}

// A set knows how many of its tags fail, and does not count those that it has dropped.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		want := func(tags ...string) {
			t.Helper()
			var got []string
			for st := range set.Server().Failing() {
				if st.Err == nil {
					t.Errorf("%s has no error", st.Tag)
				}
				got = append(got, st.Tag)
			}
			if slices.Sort(got); !slices.Equal(got, tags) {
				t.Errorf("%q fail, want %q", got, tags)
			}
		}
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		want()
		store.Set(drivertest.Fault{Before: errDown})
		for _, tag := range []string{"order", "other"} {
			_, err := set.Take(t.Context(), tag, nil, 100_000)
			wantError(t, err, leaf.ErrExhausted)
		}
		want("order", "other")
		time.Sleep(10 * time.Second) // nothing was granted of the second, and nothing asks for it
		want("order")
		store.Set(drivertest.Fault{})
		if _, err := set.Take(t.Context(), "order", nil, 100_000); err != nil {
			t.Error(err)
		}
		want()
	})
}
