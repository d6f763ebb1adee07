package segment_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// floodFor has many callers ask for ever new tags that do not exist, until stop is called.
func floodFor(ctx context.Context, set *segment.Set, n int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var last atomic.Int64
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, _ = set.Next(ctx, fmt.Sprint("no-", last.Add(1)))
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		callers.Wait()
	}
}

// However many names callers make up, a new tag has IDs at its first use, and the number of calls
// to the store is bounded.
func TestFirstUseDuringAFlood(t *testing.T) {
	for _, callers := range []int{100, 2000} { // these fill the places, and the buffers
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore(t, 1, 10)
				set := segment.NewSet(&frozen{store}, nil)
				defer set.Close(t.Context())
				<-set.Ready()
				stop := floodFor(t.Context(), set, callers)
				defer stop()
				time.Sleep(time.Second)
				start, before := time.Now(), store.Calls(drivertest.OpTags)
				for i := range 10 {
					tag := fmt.Sprint("new", i)
					create(t, store, tag, 1, 10)
					if id, err := set.Next(t.Context(), tag); err != nil || id != 1 {
						t.Errorf("the first use of %s: %d, %v", tag, id, err)
					}
					time.Sleep(300 * time.Millisecond)
				}
				lists, seconds := store.Calls(drivertest.OpTags)-before, int(time.Since(start)/time.Second)
				if lists > 4*seconds+4 {
					t.Errorf("%d listings in %d s", lists, seconds)
				}
			})
		})
	}
}

// manyNames are as many as are kept of a listing by name.
var manyNames = sync.OnceValue(func() (names []string) {
	for i := range 100_000 {
		names = append(names, fmt.Sprint("tag", i))
	}
	return names
})

// manyTags lists more tags than are kept of a listing, and then those that it has.
type manyTags struct{ frozen }

func (m *manyTags) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		for _, name := range manyNames() {
			if !yield(segment.Tag{Name: name, Step: 1}, nil) {
				return
			}
		}
		for tag, err := range m.frozen.Tags(ctx) {
			if !yield(tag, err) {
				return
			}
		}
	}
}

// The set also finds a tag beyond the kept part of a listing. One that it keeps as a hash alone needs
// no further listing, once callers have caused the second one.
func TestFirstUseAmongManyTags(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			if !kept {
				segment.LimitListed(t, 100_000, 0)
			}
			synctest.Test(t, func(t *testing.T) {
				store := newStore(t, 1, 10)
				create(t, store, "other", 1, 10)
				set := segment.NewSet(&manyTags{frozen{store}}, nil)
				defer set.Close(t.Context())
				<-set.Ready()
				stop := floodFor(t.Context(), set, 2000)
				defer stop()
				time.Sleep(time.Second)
				for _, tag := range []string{"order", "other"} {
					asked := time.Now()
					if id, err := set.Next(t.Context(), tag); err != nil || id != 1 {
						t.Errorf("%s: got %d, %v", tag, id, err)
					}
					if waited := time.Since(asked); kept && waited > 0 { // in virtual time
						t.Errorf("%s: waited for %v", tag, waited)
					}
				}
			})
		})
	}
}

// A tag with the hash of a listed one is looked up, and the store says that it is unknown.
func TestHashOfAnotherTag(t *testing.T) {
	set := segment.NewSet(newStore(t, 1, 10), nil)
	defer set.Close(t.Context())
	<-set.Ready()
	set.Collide("nope")
	if set.Server().Has("nope") {
		t.Error("the listing had no such tag")
	}
	if err := set.Check(t.Context(), "nope"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Error(err)
	}
	if id, err := set.Next(t.Context(), "nope"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("got %d, %v", id, err)
	}
	if _, err := set.Form(t.Context(), "nope"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Error(err)
	}
}

// While callers ask for too many unknown tags, an error tells that to callers who cannot wait.
func TestFloodOfCallersWhoCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(&frozen{store}, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		stop := floodFor(t.Context(), set, 2000)
		defer stop()
		time.Sleep(time.Second)
		cause := fmt.Errorf("no time")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := set.Next(ctx, "new")
		wantError(t, err, cause)
		start := time.Now()
		_, err = set.Next(t.Context(), "none")
		wantError(t, err, leaf.ErrExhausted)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("a name that does not exist: answered after %v", took)
		}
	})
}
