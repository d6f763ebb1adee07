package segment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// identified is a store with an identity that a test changes, as when another store stands
// behind the same name.
type identified struct {
	*drivertest.Faulty
	identity string
	expected string

	mu sync.Mutex // guards identity
}

func (s *identified) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := s.Faulty.Advance(ctx, tag, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	grant.Store = s.identity
	return grant, err
}

func (s *identified) Expect(identity string) { s.expected = identity }

// replace puts another store, with a new counter, behind the name.
func (s *identified) replace(t *testing.T, identity string) {
	t.Helper()
	loseWrites(t, s.Faulty, 1)
	s.become(identity)
}

func (s *identified) become(identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identity = identity
}

// A grant of another store is discarded; the stock is issued, then calls fail, and no lift
// touches the other store's counter.
func TestForeignGrantsAreDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &identified{Faulty: newStore(t, 1, 100), identity: "A"}
		s := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Memory: notes{}}})
		defer s.Close(t.Context())
		var ranges drivertest.Ranges
		take := func() error {
			got, err := s.Take(t.Context(), "order", nil, 10)
			ranges.Add(got...)
			return err
		}
		if err := take(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		store.replace(t, "B")
		var err error
		for range 1000 {
			if err = take(); err != nil {
				break
			}
		}
		if !errors.Is(err, segment.ErrForeignStore) || !errors.Is(err, leaf.ErrExhausted) {
			t.Fatalf("got %v once the stock was used up, want it to wrap ErrForeignStore", err)
		}
		time.Sleep(time.Minute)
		for tag, err := range store.Tags(t.Context()) {
			if err != nil || tag.Name == "order" && tag.MaxID > 10_000 {
				t.Errorf("the counter of the other store came to %d, %v", tag.MaxID, err)
			}
		}
		high := ranges.Sorted()[len(ranges.Sorted())-1].End
		store.become("A")
		raise := high + 1000
		if _, err := store.Alter(t.Context(), "order", segment.Change{MaxID: &raise, Force: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := take(); err != nil {
			t.Errorf("with the known store back: %v", err)
		}
		if err := ranges.Check(); err != nil {
			t.Error(err)
		}
	})
}

// The memory keeps the identity, a grant without one passes, and an operator may name another.
func TestStoreIdentityIsRemembered(t *testing.T) {
	memory := notes{}
	try := func(s *identified, pin string) error {
		b := segment.NewBuffer(s, "order", &segment.Options{Memory: memory, StoreID: pin, Wait: 50 * time.Millisecond})
		defer b.Close(context.Background())
		_, err := b.Next(t.Context())
		return err
	}
	other := func(identity string) *identified {
		return &identified{Faulty: newStore(t, 1_000_000, 100), identity: identity}
	}
	for _, c := range []struct {
		name, identity, pin string
		foreign             bool
	}{
		{"a store without one", "", "", false},
		{"the first", "A", "", false},
		{"the same", "A", "", false},
		{"a server in between passes none on", "", "", false},
		{"another", "B", "", true},
		{"none where one is demanded", "", "A", true},
		{"another that an operator accepts", "B", "B", false},
		{"the accepted one", "B", "", false},
		{"the former one", "A", "", true},
	} {
		s := other(c.identity)
		if err := try(s, c.pin); errors.Is(err, segment.ErrForeignStore) != c.foreign || !c.foreign && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.foreign && s.expected == "" {
			t.Errorf("%s: the store was not told which identity is known", c.name)
		}
	}
}
