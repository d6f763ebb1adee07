package segment

import (
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"
)

// A table maps tags to buffers, and finds one without a lock. A buffer is in the slot
// that the hash of its tag names, or in the next free one. A filled slot is never freed:
// searches for other tags must continue beyond it.
type table struct {
	seed  maphash.Seed
	slots atomic.Pointer[[]slot]

	mu     sync.Mutex // held to write
	filled int        // used slots
}

type slot = atomic.Pointer[Buffer]

// gone fills the slot of a removed buffer.
var gone = new(Buffer)

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	t.slots.Store(new(make([]slot, 8)))
	return t
}

// get returns the buffer of tag or nil.
func (t *table) get(tag string) *Buffer {
	slots, hash := *t.slots.Load(), maphash.String(t.seed, tag)
	if b := slots[hash&uint64(len(slots)-1)].Load(); b != nil && b.tag == tag && b != gone {
		return b
	}
	_, b := find(slots, hash, tag)
	return b
}

// find returns the slot of tag, or the free slot for it, and the buffer there.
func find(slots []slot, hash uint64, tag string) (*slot, *Buffer) {
	last := uint64(len(slots) - 1)
	for i := hash & last; ; i = (i + 1) & last {
		b := slots[i].Load()
		if b == nil || b.tag == tag && b != gone {
			return &slots[i], b
		}
	}
}

// put makes b the buffer of its tag and returns the one before or nil.
func (t *table) put(b *Buffer) (before *Buffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.makeRoom()
	at, before := find(*t.slots.Load(), maphash.String(t.seed, b.tag), b.tag)
	at.Store(b)
	if before == nil {
		t.filled++
	}
	return before
}

// makeRoom keeps a quarter of the slots free, so that every search ends soon; t.mu is held.
func (t *table) makeRoom() {
	old := *t.slots.Load()
	if t.filled < len(old)/4*3 {
		return
	}
	used := 0
	for range t.all() {
		used++
	}
	size := len(old)
	for used >= size/2 {
		size *= 2
	}
	slots := make([]slot, size)
	for b := range t.all() {
		at, _ := find(slots, maphash.String(t.seed, b.tag), b.tag)
		at.Store(b)
	}
	t.filled = used
	t.slots.Store(&slots)
}

// remove takes b out, if it is still the buffer of its tag.
func (t *table) remove(b *Buffer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, there := find(*t.slots.Load(), maphash.String(t.seed, b.tag), b.tag); there == b {
		at.Store(gone)
	}
}

// all iterates over the buffers. It may miss buffers that come or go meanwhile.
func (t *table) all() iter.Seq[*Buffer] {
	return func(yield func(*Buffer) bool) {
		slots := *t.slots.Load()
		for i := range slots {
			if b := slots[i].Load(); b != nil && b != gone && !yield(b) {
				return
			}
		}
	}
}
