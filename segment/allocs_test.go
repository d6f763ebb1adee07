package segment_test

import (
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// Hot paths allocate nothing. One grant lasts for the whole test.
func TestHotPathsAllocateNothing(t *testing.T) {
	ctx, store := t.Context(), memory.New().Store()
	create(t, store, "order", 1, 1_000_000_000)
	set := segment.NewSet(store, nil)
	defer set.Close(ctx)
	b := segment.NewBuffer(store, "order", nil)
	defer b.Close(ctx)
	own, named := b.Cursor(0), set.Cursor("order", 0)
	ranges := make([]leaf.Range, 0, 4)
	for name, call := range map[string]func() error{
		"Buffer.Next":           func() error { _, err := b.Next(ctx); return err },
		"Buffer.Take":           func() error { _, err := b.Take(ctx, ranges, 1000); return err },
		"Buffer.TakeContiguous": func() error { _, err := b.TakeContiguous(ctx, 1000); return err },
		"Set.Next":              func() error { _, err := set.Next(ctx, "order"); return err },
		"Set.Take":              func() error { _, err := set.Take(ctx, "order", ranges, 1000); return err },
		"Cursor.Next":           func() error { _, err := own.Next(ctx); return err },
		"Cursor.Next of a set":  func() error { _, err := named.Next(ctx); return err },
	} {
		if err := call(); err != nil { // the first call loads the tag
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1000, func() { _ = call() }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
