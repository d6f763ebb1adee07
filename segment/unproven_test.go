package segment_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// flood has callers ask for n tags that do not exist, all at once, and returns when all
// have been answered.
func flood(t *testing.T, set *segment.Set, round, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := set.Next(t.Context(), fmt.Sprintf("no-%d-%d", round, i)); err == nil {
				t.Error("an ID of a tag that does not exist")
			}
		})
	}
	wg.Wait()
}

// While the store is down callers ask for ever new tags: what that costs in memory and
// log is bounded, and once the store is back new tags can be used.
func TestFloodOfUnknownTagsWhileTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		opts := segment.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		set := segment.NewSet(store, &segment.SetOptions{Options: opts})
		defer set.Close(t.Context())
		start := time.Now()
		for round := range 10 {
			flood(t, set, round, 3000)
			if n := len(set.Stats()); n > 1024 {
				t.Fatalf("%d tags in memory", n)
			}
		}
		lines, seconds := strings.Count(log.String(), "\n"), int(time.Since(start)/time.Second)
		if lines > seconds+2 {
			t.Errorf("%d lines in %d s", lines, seconds)
		}
		_, err := set.Next(t.Context(), "one-more")
		wantError(t, err, leaf.ErrExhausted)
		store.Set(drivertest.Fault{})
		time.Sleep(5 * time.Second)
		if n := len(set.Stats()); n != 0 {
			t.Errorf("%d tags in memory after the flood", n)
		}
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Error(err)
		}
	})
}

// frozen never answers about the tags that it does not have.
type frozen struct{ segment.Store }

func (f *frozen) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if strings.HasPrefix(tag, "no-") {
		<-ctx.Done()
		return segment.Grant{}, ctx.Err()
	}
	return f.Store.Advance(ctx, tag, n)
}

// Unknown tags leave places among the calls to the store for tags that exist.
func TestUnknownTagsLeavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New().Store()
		create(t, inner, "order", 1, 10)
		set := segment.NewSet(&frozen{inner}, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		for i := range 100 {
			go set.Next(t.Context(), fmt.Sprintf("no-%d", i))
		}
		time.Sleep(500 * time.Millisecond)
		if id, err := set.Next(t.Context(), "order"); err != nil || id != 1 {
			t.Errorf("the first request for a tag that exists: %d, %v", id, err)
		}
	})
}

// A tag that exists is never one too many.
func TestListedTagsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tags = 1500
		store := memory.New().Store()
		for i := range tags {
			create(t, store, fmt.Sprint(i), 1, 10)
		}
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		for i := range tags {
			if _, err := set.Next(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Check tells unknown tags from known ones and consumes nothing.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		check := func(tag string, want error) {
			t.Helper()
			if err := set.Check(t.Context(), tag); want != nil {
				wantError(t, err, want)
			} else if err != nil {
				t.Error(err)
			}
		}
		check("order", nil)
		if n := store.Calls(drivertest.OpAdvance); n != 0 {
			t.Errorf("%d calls to the store for a tag that is listed", n)
		}
		check("none", leaf.ErrUnknownTag)
		check("", leaf.ErrInvalid)
		create(t, store, "new", 1, 10)
		check("new", nil)
		if id, err := set.Next(t.Context(), "new"); err != nil || id != 1 {
			t.Errorf("got %d, %v", id, err)
		}
		store.Set(drivertest.Fault{Before: errDown})
		check("other", leaf.ErrExhausted)
	})
}

// Has knows listed and used tags, and asks no store.
func TestHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		create(t, store, "new", 1, 10)
		if !set.Server().Has("order") || set.Server().Has("new") || set.Server().Has("none") {
			t.Errorf("listed %t, new %t, none %t", set.Server().Has("order"), set.Server().Has("new"), set.Server().Has("none"))
		}
		if _, err := set.Next(t.Context(), "new"); err != nil || !set.Server().Has("new") {
			t.Errorf("used: %t, %v", set.Server().Has("new"), err)
		}
		_, err := set.Next(t.Context(), "none")
		wantError(t, err, leaf.ErrUnknownTag)
		if set.Server().Has("none") {
			t.Error("an unknown tag is known")
		}
	})
}

// A frozenList is a store whose calls fail and whose listing never ends.
type frozenList struct{ segment.Store }

func (f frozenList) Advance(context.Context, string, int64) (segment.Grant, error) {
	return segment.Grant{}, errDown
}

func (f frozenList) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		<-ctx.Done()
		yield(segment.Tag{}, ctx.Err())
	}
}

// A tag that no caller asks for any more ends without a listing.
func TestUnknownTagExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := segment.NewSet(frozenList{newStore(t, 1, 10)}, &segment.SetOptions{Options: segment.Options{CallTimeout: time.Hour}})
		defer set.Close(t.Context())
		flood(t, set, 0, 100)
		if n := len(set.Stats()); n != 100 {
			t.Fatalf("%d tags in memory", n)
		}
		time.Sleep(10 * time.Second)
		if n := len(set.Stats()); n != 0 {
			t.Errorf("%d tags in memory, of which the store never said anything", n)
		}
	})
}

// A grant ends the doubt about a tag: the first use of many tags beyond those that a set keeps of a
// listing goes as fast as the store.
func TestGrantedTagsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(unlisted{store}, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		for i := range 3000 {
			tag := fmt.Sprint("tag-", i)
			create(t, store, tag, 1, 10)
			if _, err := set.Next(t.Context(), tag); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An unlisted store lists no tags.
type unlisted struct{ segment.Store }

func (unlisted) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(func(segment.Tag, error) bool) {}
}

// A listing ends the buffer of a listed tag without IDs and callers: its failure would be reported
// for ever.
func TestListedTagExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(struct{ segment.Store }{store}, &segment.SetOptions{CheckInterval: time.Minute})
		defer set.Close(t.Context())
		<-set.Ready()
		store.Set(drivertest.Fault{Before: errDown})
		_, err := set.Next(t.Context(), "order")
		wantError(t, err, errDown)
		time.Sleep(5 * time.Second) // the buffer does not call the store any more
		if n := len(set.Stats()); n != 1 {
			t.Fatalf("%d tags in memory", n)
		}
		store.Set(drivertest.Fault{})
		time.Sleep(5 * time.Minute)
		if n := len(set.Stats()); n != 0 {
			t.Errorf("%d tags in memory", n)
		}
		if id, err := set.Next(t.Context(), "order"); id != 1 || err != nil {
			t.Errorf("got %d, %v", id, err)
		}
	})
}

// A new tag with stock, or with a call to the store in flight, does not expire.
func TestNewTagStays(t *testing.T) {
	for name, trip := range map[string]time.Duration{"stock": 0, "in flight": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := newStore(t, 1, 10)
				store := &slowGrants{inner, trip}
				set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour, Options: segment.Options{CallTimeout: time.Minute}})
				defer set.Close(t.Context())
				<-set.Ready()
				create(t, inner, "new", 1, 10)
				_, err := set.Next(t.Context(), "new")
				if (err == nil) != (trip == 0) {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if stats := set.Stats(); len(stats) != 1 || stats[0].Refills != 1 || stats[0].Stock < 9 {
					t.Errorf("got %+v", stats)
				}
			})
		})
	}
}

// A slowGrants takes its time to grant, also where the caller has gone.
type slowGrants struct {
	segment.Store
	trip time.Duration
}

func (s *slowGrants) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	time.Sleep(s.trip)
	return s.Store.Advance(context.WithoutCancel(ctx), tag, n)
}
