package segment

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// A table behaves as a map, through growth and removals.
func TestTableIsAMap(t *testing.T) {
	table, want := newTable(), make(map[string]*Buffer)
	for range 50_000 {
		tag := fmt.Sprint(rand.N(3000))
		switch b := want[tag]; {
		case table.get(tag) != b:
			t.Fatalf("tag %s: got %p, want %p", tag, table.get(tag), b)
		case rand.N(3) > 0:
			want[tag] = &Buffer{tag: tag}
			if before := table.put(want[tag]); before != b {
				t.Fatalf("tag %s: put over %p, want %p", tag, before, b)
			}
		case b != nil:
			table.remove(&Buffer{tag: tag}) // another one of the same tag
			if table.get(tag) != b {
				t.Fatalf("tag %s was removed with another buffer", tag)
			}
			table.remove(b)
			delete(want, tag)
		}
	}
	for b := range table.all() {
		if want[b.tag] != b {
			t.Errorf("all has %s", b.tag)
		}
		delete(want, b.tag)
	}
	if len(want) > 0 {
		t.Errorf("all lacks %d buffers", len(want))
	}
	if table.get("") != nil {
		t.Error("the mark of a removed buffer is found")
	}
}

// Buffers that stay are found while others come and go.
func TestTableWhileItGrows(t *testing.T) {
	table := newTable()
	var wg sync.WaitGroup
	for w := range 4 {
		stays := &Buffer{tag: fmt.Sprint("stays ", w)}
		table.put(stays)
		wg.Go(func() {
			for i := range 5000 {
				b := &Buffer{tag: fmt.Sprint(w, " ", i)}
				table.put(b)
				if table.get(b.tag) != b || table.get(stays.tag) != stays {
					t.Errorf("%s is lost", b.tag)
				}
				if table.remove(b); table.get(b.tag) != nil {
					t.Errorf("%s is still there", b.tag)
				}
			}
		})
	}
	wg.Wait()
	if n := len(*table.slots.Load()); n > 64 {
		t.Errorf("%d slots for 4 buffers", n)
	}
}
