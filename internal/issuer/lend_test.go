package issuer_test

import (
	"errors"
	"math"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// A relay that combines the calls of several callers gets their IDs, however small max_range is.
func TestLendStrict(t *testing.T) {
	store := memory.New().Store()
	strict := segment.Tag{Name: "invoice", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	if err := store.Create(t.Context(), strict); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, nil)
	t.Cleanup(func() { _ = set.Close(t.Context()) })
	for maxRange, refused := range map[int][]int64{
		50: {10_001, 0, -1, math.MinInt64, math.MaxInt64, 1<<32 + 1}, 20_000: {20_001, 1<<32 + 1},
	} {
		ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, &issuer.Options{MaxRange: maxRange})
		for _, n := range []int64{1, 51, 10_000, int64(maxRange)} {
			if g, err := ids.AdvanceStrict(t.Context(), "invoice", nil, false, n); err != nil || g.Range.Len() != n {
				t.Errorf("max_range %d: got %v, %v for %d", maxRange, g.Range, err, n)
			}
		}
		for _, n := range refused {
			if g, err := ids.AdvanceStrict(t.Context(), "invoice", nil, false, n); !errors.Is(err, leaf.ErrInvalid) {
				t.Errorf("max_range %d: got %v, %v for %d", maxRange, g.Range, err, n)
			}
		}
	}
}
