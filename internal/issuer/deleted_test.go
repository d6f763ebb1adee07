package issuer_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// One server deletes a tag and creates it at once. Another has stock of the deleted tag and goes
// on.
func TestDeleteAndCreateBesideAnotherServer(t *testing.T) {
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 1000}); err != nil {
		t.Fatal(err)
	}
	newSet := func() *segment.Set {
		set := segment.NewSet(store, nil)
		t.Cleanup(func() { _ = set.Close(context.WithoutCancel(t.Context())) })
		return set
	}
	here, there := newSet(), newSet()
	tags := issuer.NewTags(store, here.Server(), nil)
	seen := make(map[int64]bool)
	take := func(set *segment.Set, n int) {
		t.Helper()
		for range n {
			id, err := set.Next(t.Context(), "order")
			if err != nil {
				t.Fatal(err)
			}
			if seen[id] {
				t.Fatalf("ID %d came twice", id)
			}
			seen[id] = true
		}
	}
	take(there, 1)
	take(here, 1)
	if err := tags.Delete(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	tag, err := tags.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 1000})
	if err != nil || tag.MaxID < 2001 {
		t.Fatalf("created again: %+v, %v", tag, err)
	}
	take(here, 1500)
	take(there, 1500)
	take(here, 1500)
}

// At the deletion, a store that lost writes is below the server's knowledge of the tag.
func TestDeleteKeepsWhatTheServerKnows(t *testing.T) {
	f := newFixture(t)
	f.segments.known = 5000
	if err := f.Delete(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	if tag, err := f.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil || tag.MaxID != 5000 {
		t.Errorf("created again: max_id %d, %v, want 5000", tag.MaxID, err)
	}
}
