package segment_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// A digesting store counts its listings.
type digesting struct {
	*drivertest.Faulty
	listings atomic.Int64
}

func (d *digesting) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	d.listings.Add(1)
	return d.Faulty.Tags(ctx)
}

func (d *digesting) Digest(ctx context.Context) (string, error) {
	var text strings.Builder
	text.WriteString("tags")
	for tag, err := range d.Faulty.Tags(ctx) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, " %q %d", tag.Name, tag.Step)
	}
	return text.String(), nil
}

// A set does not list unchanged tags, and notices changed ones.
func TestDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &digesting{Faulty: newStore(t, 1, 1000)}
		create(t, store, "gone", 1, 1000)
		create(t, store, "rare", 1, 1000)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		for _, tag := range []string{"order", "gone"} {
			if _, err := set.Next(t.Context(), tag); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		before := store.listings.Load()
		if _, err := set.Next(t.Context(), "rare"); err != nil { // that the listing had
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := store.listings.Load() - before; n > 0 {
			t.Errorf("%d listings of the same tags", n)
		}
		if err := store.Delete(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, err := set.Next(t.Context(), "gone")
		wantError(t, err, leaf.ErrUnknownTag)
	})
}

// A tag that came and went between two looks leaves the digest as it was.
func TestDigestOfATagThatCameAndWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &digesting{Faulty: newStore(t, 1, 1000)}
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		time.Sleep(100 * time.Second) // no look is under way then
		create(t, store, "short-lived", 1, 1000)
		if _, err := set.Next(t.Context(), "short-lived"); err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), "short-lived"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, err := set.Next(t.Context(), "short-lived")
		wantError(t, err, leaf.ErrUnknownTag)
	})
}

// A long comparison, as of a million tags, does not keep the store and the server busy.
func TestLongChecksAreRare(t *testing.T) {
	for took, want := range map[time.Duration]int64{100 * time.Millisecond: 120, time.Second: 18, 10 * time.Second: 12} {
		synctest.Test(t, func(t *testing.T) {
			store := &tardy{Faulty: newStore(t, 1, 1000), took: took}
			set := segment.NewSet(store, nil)
			defer set.Close(t.Context())
			<-set.Ready()
			time.Sleep(time.Hour)
			if n := store.listings.Load(); n < want-2 || n > want+2 {
				t.Errorf("%d checks of %v each in an hour, want %d", n, took, want)
			}
		})
	}
}

// A tardy store takes its time to list the tags.
type tardy struct {
	*drivertest.Faulty
	took     time.Duration
	listings atomic.Int64
}

func (s *tardy) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	s.listings.Add(1)
	time.Sleep(s.took)
	return s.Faulty.Tags(ctx)
}
