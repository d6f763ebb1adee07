package worker

import (
	"slices"
	"testing"
)

// Of many nodes that start at once, each gets a worker ID after a few candidates: the first try of
// all of them comes before the second of any.
func TestSpread(t *testing.T) {
	const nodes = 300
	free := make([]int64, 1024)
	for i := range free {
		free[i] = int64(i)
	}
	taken := map[int64]bool{}
	waiting := make([][]int64, nodes)
	for i := range waiting {
		waiting[i] = slices.Clone(free)
		spread(waiting[i])
		if waiting[i][0] != 0 {
			t.Fatalf("the first candidate is %d", waiting[i][0])
		}
	}
	order := slices.Clone(waiting[0])
	slices.Sort(order)
	if !slices.Equal(order, free) {
		t.Error("spread changed the set of candidates")
	}
	tries := 0
	for try := range maxRivals {
		waiting = slices.DeleteFunc(waiting, func(ids []int64) bool {
			tries++
			won := !taken[ids[try]]
			taken[ids[try]] = true
			return won
		})
	}
	if len(waiting) > nodes/100 || tries > 8*nodes {
		t.Errorf("%d of %d nodes have no worker ID after %d tries", len(waiting), nodes, tries)
	}
	spread(nil)
	spread(free[:1])
}
