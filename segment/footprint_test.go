package segment

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"
	"time"
)

// manyTags is a store of n tags, which share a counter.
type manyTags struct {
	counterStore
	n int
}

func tagName(i int) string { return fmt.Sprintf("tag-%06d", i) }

func (m *manyTags) Tags(context.Context) iter.Seq2[Tag, error] {
	return func(yield func(Tag, error) bool) {
		for i := range m.n {
			if !yield(Tag{Name: tagName(i), Step: 10}, nil) {
				return
			}
		}
	}
}

// liveBytes is the size of the heap after a collection.
func liveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools still held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A tag after one use costs less than a kilobyte, including the memory of its counter and its name
// in the listing.
func TestTagFootprint(t *testing.T) {
	const n, most = 20_000, 1088
	before := liveBytes()
	marks, err := OpenMemory(t.TempDir()+"/counters", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer marks.Close()
	set := NewSet(&manyTags{n: n}, &SetOptions{Options: Options{Memory: marks, Wait: time.Minute}})
	<-set.Ready()
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := caller; i < n; i += 8 {
				if _, err := set.Next(t.Context(), tagName(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	each := (liveBytes() - before) / n
	t.Logf("%d bytes a tag", each)
	if each > most {
		t.Errorf("a tag that was used once holds %d bytes, at most %d wanted", each, most)
	}
	if err := set.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
