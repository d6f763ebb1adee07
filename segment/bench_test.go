package segment_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// BenchmarkNext shows what an ID costs beside the least it could cost, one atomic
// add, and beside the same buffer under a read lock, which is Java Leaf's design.
func BenchmarkNext(b *testing.B) {
	b.Run("atomic-add", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	b.Run("buffer", func(b *testing.B) {
		buffer := benchBuffer(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := buffer.Next(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("set", func(b *testing.B) {
		set := segment.NewSet(benchStore(b), nil)
		defer set.Close(b.Context())
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := set.Next(b.Context(), "order"); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("rwmutex", func(b *testing.B) {
		locked := &lockedBuffer{store: benchStore(b)}
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := locked.next(b); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkTake shows what an ID of a batch of 1000 costs; divide by 1000.
func BenchmarkTake(b *testing.B) {
	buffer := benchBuffer(b)
	b.RunParallel(func(pb *testing.PB) {
		var ranges []leaf.Range
		for pb.Next() {
			var err error
			if ranges, err = buffer.Take(b.Context(), ranges[:0], 1000); err != nil {
				b.Error(err)
			}
		}
	})
}

func benchStore(b *testing.B) segment.Store {
	store := memory.New()
	create(b, store, "order", 1, 1_000_000)
	return store
}

func benchBuffer(b *testing.B) *segment.Buffer {
	buffer := segment.NewBuffer(benchStore(b), "order", nil)
	b.Cleanup(func() { buffer.Close(b.Context()) })
	return buffer
}

// lockedBuffer is the double buffer with its cursor under a read-write lock. It
// loads in the caller, which hides nothing here: the segments are large.
type lockedBuffer struct {
	store segment.Store
	mu    sync.RWMutex
	value atomic.Int64
	max   int64
}

func (l *lockedBuffer) next(b *testing.B) (int64, error) {
	for {
		l.mu.RLock()
		id := l.value.Add(1) - 1
		ok := id < l.max
		l.mu.RUnlock()
		if ok {
			return id, nil
		}
		l.mu.Lock()
		if l.value.Load() >= l.max {
			grant, err := l.store.Advance(b.Context(), "order", 1_000_000)
			if err != nil {
				l.mu.Unlock()
				return 0, err
			}
			l.value.Store(grant.Range.Start)
			l.max = grant.Range.End
		}
		l.mu.Unlock()
	}
}
