package segment

import (
	"math"
	"testing"

	"github.com/leaf-id/leaf"
)

// Near the end of the ID space a late caller gets nothing, not a sum that wrapped.
func TestReserveNearTheEnd(t *testing.T) {
	r := leaf.Range{Start: math.MaxInt64 - 10, End: math.MaxInt64}
	for _, late := range []int64{1, 10, maxMaxStock} {
		s := newSpan(Grant{Range: r})
		s.used.Store(9)
		if got := s.reserve(late); got != (leaf.Range{Start: math.MaxInt64 - 1, End: math.MaxInt64}) {
			t.Errorf("the last ID: got %v", got)
		}
		s.used.Store(9) // as if the others came between the look and the add
		s.used.Add(late + 5)
		if got := s.take(late); !got.Empty() {
			t.Errorf("a drained span gave %v", got)
		}
		s.seal()
		if got := s.take(late); !got.Empty() {
			t.Errorf("a sealed span gave %v", got)
		}
	}
}
