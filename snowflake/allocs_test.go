package snowflake_test

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// Hot paths allocate nothing, in a burst.
func TestHotPathsAllocateNothing(t *testing.T) {
	layout, _ := snowflake.Preset("leaf")
	ids, err := snowflake.New(layout, &snowflake.Options{MaxAhead: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ids.Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
	ctx, ranges := t.Context(), make([]leaf.Range, 0, 4)
	for name, call := range map[string]func() error{
		"Next": func() error { _, err := ids.Next(ctx); return err },
		"Take": func() error { _, err := ids.Take(ctx, ranges, 1000); return err },
	} {
		if err := call(); err != nil { // the first call opens the gate
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1000, func() { _ = call() }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
