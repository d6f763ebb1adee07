package segment_test

import (
	"context"
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

// However many names callers make up, a tag that was just created has IDs at its first use, and
// the store is called a bounded number of times.
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

// manyTags lists more tags than are kept of a listing, and then those that it has.
type manyTags struct{ frozen }

func (m *manyTags) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		for i := range 100_000 {
			if !yield(segment.Tag{Name: fmt.Sprint("tag", i), Step: 1}, nil) {
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

// The set also finds a tag beyond the kept part of a listing.
func TestFirstUseAmongManyTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &manyTags{frozen{newStore(t, 1, 10)}}
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		<-set.Ready()
		stop := floodFor(t.Context(), set, 2000)
		defer stop()
		time.Sleep(time.Second)
		if id, err := set.Next(t.Context(), "order"); err != nil || id != 1 {
			t.Errorf("got %d, %v", id, err)
		}
	})
}

// While callers ask for too many unknown tags, those who cannot wait are told so.
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
