package bench_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

const tag = "bench"

// A source is one of the things that are measured: it hands out one ID.
type source interface {
	Next(ctx context.Context) (int64, error)
}

// sources are opened anew for every run. All of them but the atomic add draw on the
// same kind of store, in allocations of at least a million IDs.
var sources = []struct {
	name string
	open func(testing.TB) source
}{
	{"atomic", func(testing.TB) source { return new(counter) }},
	{"buffer", func(tb testing.TB) source { return newBuffer(tb) }},
	{"set", func(tb testing.TB) source { return newNamed(tb) }},
	{"rwmutex", func(tb testing.TB) source { return newPair(tb) }},
}

func BenchmarkNext(b *testing.B) {
	for _, s := range sources {
		b.Run(s.name, func(b *testing.B) {
			benchmarkNext(b, s.open(b))
		})
	}
}

func benchmarkNext(b *testing.B, ids source) {
	ctx := b.Context()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := ids.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkTake reserves 1000 IDs at a time; ns/ID is the figure to compare with
// BenchmarkNext.
func BenchmarkTake(b *testing.B) { benchmarkTake(b, newBuffer(b)) }

// BenchmarkCursorNext has each goroutine use a cursor of its own.
func BenchmarkCursorNext(b *testing.B) {
	buffer, ctx := newBuffer(b), b.Context()
	b.RunParallel(func(pb *testing.PB) {
		ids := source(buffer.Cursor(0))
		for pb.Next() {
			if _, err := ids.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchmarkTake(b *testing.B, ids leaf.Generator) {
	const n = 1000
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var ranges []leaf.Range
		for pb.Next() {
			var err error
			if ranges, err = ids.Take(ctx, ranges[:0], n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/ID")
}

// everyIDOnce has callers take IDs at the same time, and compares all of them.
func everyIDOnce(t *testing.T, ids source, callers, each int) {
	t.Helper()
	seen := make([][]int64, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				id, err := ids.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				seen[i] = append(seen[i], id)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(seen...)
	slices.Sort(all)
	if got := len(slices.Compact(all)); got != callers*each {
		t.Errorf("%d distinct IDs out of %d", got, callers*each)
	}
}

// TestSources shows that what is measured does its work: every ID once.
func TestSources(t *testing.T) {
	for _, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			everyIDOnce(t, s.open(t), 4, 600_000)
		})
	}
}

func newStore(tb testing.TB) segment.Store {
	tb.Helper()
	store := memory.New()
	if err := store.Create(tb.Context(), segment.Tag{Name: tag, MaxID: 1, Step: 1_000_000}); err != nil {
		tb.Fatal(err)
	}
	return store
}

func newBuffer(tb testing.TB) *segment.Buffer {
	tb.Helper()
	return segment.NewBuffer(newStore(tb), tag, nil)
}

// A named looks the buffer up by its tag each time, as a server does.
type named struct{ set *segment.Set }

func newNamed(tb testing.TB) named {
	tb.Helper()
	set := segment.NewSet(newStore(tb), nil)
	tb.Cleanup(func() { set.Close(context.WithoutCancel(tb.Context())) })
	return named{set}
}

func (n named) Next(ctx context.Context) (int64, error) { return n.set.Next(ctx, tag) }

// A counter is the floor: an atomic add and nothing else. The padding keeps other
// data off its cache line.
type counter struct {
	_ [64]byte
	n atomic.Int64
	_ [64]byte
}

func (c *counter) Next(context.Context) (int64, error) { return c.n.Add(1), nil }

// A pair does what a Buffer does in the way of Java Leaf: two segments, an atomic
// add under the shared side of a read-write lock, the next segment loaded once a
// tenth of the current one is used, the switch under the exclusive side. Where Java
// gives up after 10 ms it goes on waiting.
type pair struct {
	store segment.Store

	mu      sync.RWMutex
	half    [2]half
	current int
	ready   bool // the other half is loaded
	loading atomic.Bool
	err     error // of the last load
}

type half struct {
	next, end, size int64
}

func newPair(tb testing.TB) *pair {
	tb.Helper()
	p := &pair{store: newStore(tb)}
	p.load(tb.Context())
	p.turn()
	return p
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
	idle := h.end - atomic.LoadInt64(&h.next)
	if !p.ready && idle < h.size/10*9 && p.loading.CompareAndSwap(false, true) {
		go p.load(ctx)
	}
	id = atomic.AddInt64(&h.next, 1) - 1
	return id, id < h.end, p.err
}

func (p *pair) load(ctx context.Context) {
	defer p.loading.Store(false)
	grant, err := p.store.Advance(ctx, tag, 0)
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
