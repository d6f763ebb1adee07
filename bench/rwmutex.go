package bench

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/leaf-id/leaf/segment"
)

// A pair works like Java Leaf's buffer: two segments, an atomic add under the shared side of a
// read-write lock, the next segment loaded once a tenth of the current one is used, the switch under
// the exclusive side. It keeps waiting where Java gives up after 10 ms.
type pair struct {
	store segment.Store

	mu      sync.RWMutex
	half    [2]half
	current int
	ready   bool // the other half is loaded
	loading atomic.Bool
	err     error // of the last load
}

type half struct{ next, end, size int64 }

func newPair() (Source, error) {
	store, err := newStore()
	p := &pair{store: store}
	p.load(context.Background())
	p.turn()
	return p, err
}

func (p *pair) Next(ctx context.Context) (int64, error) {
	for {
		id, ok, err := p.draw(ctx)
		if ok || err != nil {
			return id, err
		}
		if !p.turn() {
			runtime.Gosched()
		}
	}
}

func (p *pair) draw(ctx context.Context) (id int64, ok bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	h := &p.half[p.current]
	if !p.ready && h.end-atomic.LoadInt64(&h.next) < h.size/10*9 && p.loading.CompareAndSwap(false, true) {
		go p.load(ctx)
	}
	id = atomic.AddInt64(&h.next, 1) - 1
	return id, id < h.end, p.err
}

func (p *pair) load(ctx context.Context) {
	defer p.loading.Store(false)
	grant, err := p.store.Advance(ctx, Tag, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		p.half[1-p.current] = half{next: grant.Range.Start, end: grant.Range.End, size: grant.Range.Len()}
		p.ready = true
	}
}

// turn makes the other half current if the current one is used up.
func (p *pair) turn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := &p.half[p.current]; h.next < h.end {
		return true
	}
	if !p.ready {
		return false
	}
	p.current, p.ready = 1-p.current, false
	return true
}
