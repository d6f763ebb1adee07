package frontend

import (
	"fmt"
	"testing"
)

func TestNames(t *testing.T) {
	var n Names[int]
	if _, ok := n.Get([]byte("a")); ok {
		t.Error("a is known before it was made")
	}
	n.Put("a", 1)
	n.Put("b", 2)
	n.Put("a", 3)
	n.Put("", 4)
	for name, want := range map[string]int{"a": 3, "b": 2, "": 0, "c": 0} {
		if made, ok := n.Get([]byte(name)); made != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", name, made, ok, want)
		}
	}
	const many = 100_000
	for i := range many {
		n.Put(fmt.Sprint("tag", i), i)
	}
	kept := 0
	for i := range n.shards {
		kept += len(n.shards[i].made)
	}
	if _, ok := n.Get(fmt.Append(nil, "tag", many-1)); !ok || kept > nameShards*shardNames {
		t.Errorf("%d names are kept; the last one: %v", kept, ok)
	}
	if allocs := testing.AllocsPerRun(100, func() { n.Get([]byte("tag99999")) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
