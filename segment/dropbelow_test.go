package segment_test

import (
	"testing"

	"github.com/leaf-id/leaf/segment"
)

// A set drops the IDs of the named tag alone; an unused tag has no IDs to drop.
func TestSetDropBelow(t *testing.T) {
	set := segment.NewSet(newStore(t, 1, 1000), nil)
	defer set.Close(t.Context())
	if n := set.Server().DropBelow("order", 500); n != 0 {
		t.Errorf("dropped %d of an unused tag", n)
	}
	if id, err := set.Next(t.Context(), "order"); id != 1 || err != nil {
		t.Fatalf("got %d, %v", id, err)
	}
	if n := set.Server().DropBelow("other", 500); n != 0 {
		t.Errorf("dropped %d of another tag", n)
	}
	if n := set.Server().DropBelow("order", 500); n != 498 {
		t.Errorf("dropped %d, want 498", n)
	}
	if id, err := set.Next(t.Context(), "order"); id != 500 || err != nil {
		t.Errorf("got %d, %v, want 500", id, err)
	}
}
