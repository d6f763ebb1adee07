package bench

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// Tag is the benchmark's tag.
const Tag = "bench"

// A counter is the floor: an atomic add and nothing else. The padding keeps other data off
// its cache line.
type counter struct {
	_ [64]byte
	n atomic.Int64
	_ [64]byte
}

func (c *counter) Next(context.Context) (int64, error) { return c.n.Add(1), nil }

// A bounded counter is the least that a Buffer must do: it ends and is replaced, so a call loads a
// pointer and compares.
type bounded struct{ current atomic.Pointer[stretch] }

type stretch struct {
	start int64
	limit atomic.Int64
	_     [64]byte
	n     atomic.Int64
	_     [64]byte
}

func newBounded() *bounded {
	b, s := new(bounded), &stretch{start: 1}
	s.limit.Store(math.MaxInt64)
	b.current.Store(s)
	return b
}

func (b *bounded) Next(context.Context) (int64, error) {
	s := b.current.Load()
	limit, before := s.limit.Load(), s.start-1
	if n := s.n.Add(1); n <= limit {
		return before + n, nil
	}
	return 0, leaf.ErrOverflow
}

// A mapped counter is bounded, and looked up by name each time, as programs that keep counters
// by name do.
type mapped struct{ byName sync.Map }

func newMapped() *mapped {
	m := new(mapped)
	m.byName.Store(Tag, newBounded())
	return m
}

func (m *mapped) Next(ctx context.Context) (int64, error) {
	b, ok := m.byName.Load(Tag)
	if !ok {
		return 0, leaf.ErrUnknownTag
	}
	return b.(*bounded).Next(ctx)
}

func newStore() (segment.Store, error) {
	store := memory.New().Store()
	return store, store.Create(context.Background(), segment.Tag{Name: Tag, MaxID: 1, Step: 1_000_000})
}

func newBuffer() (*segment.Buffer, error) {
	store, err := newStore()
	return segment.NewBuffer(store, Tag, nil), err
}

// A named looks the buffer up by its tag each time, as a server does.
type named struct{ set *segment.Set }

func newNamed() (Source, error) {
	store, err := newStore()
	return named{segment.NewSet(store, nil)}, err
}

func (n named) Next(ctx context.Context) (int64, error) { return n.set.Next(ctx, Tag) }

func cursors() (func() Source, error) {
	b, err := newBuffer()
	return func() Source { return b.Cursor(0) }, err
}

const takeCount = 1000

// A batch takes many IDs at a time into a slice of its own.
type batch struct {
	ids    leaf.Generator
	ranges []leaf.Range
}

func batches() (func() Source, error) {
	b, err := newBuffer()
	return func() Source { return &batch{ids: b} }, err
}

func (t *batch) Next(ctx context.Context) (first int64, err error) {
	t.ranges, err = t.ids.Take(ctx, t.ranges[:0], takeCount)
	if err != nil {
		return 0, err
	}
	return t.ranges[0].Start, nil
}

// newSnowflake runs ahead of the clock by so much before it waits.
func newSnowflake(ahead time.Duration) (Source, error) {
	layout, _ := snowflake.Preset("leaf")
	return begin(layout, &snowflake.Options{MaxAhead: ahead, Wait: time.Minute})
}

// UIDWide has 4,194,304 IDs a second, about what uid-generator's cached mode was seen to
// issue on a small machine.
var UIDWide = snowflake.Layout{Epoch: time.Unix(1463673600, 0), Tick: time.Second, TimeBits: 31, WorkerBits: 10, SequenceBits: 22}

// NewCached returns a server's generator for uid in cached mode.
func NewCached(layout snowflake.Layout, ahead time.Duration) (*snowflake.Generator, error) {
	return begin(layout, &snowflake.Options{
		MaxAhead: ahead, Wait: 3 * time.Second, Reserve: snowflake.Reserve{Size: (layout.MaxSequence() + 1) << 3},
	})
}

func begin(layout snowflake.Layout, opts *snowflake.Options) (*snowflake.Generator, error) {
	ids, err := snowflake.New(layout, opts)
	if err != nil {
		return nil, err
	}
	ids.Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
	return ids, nil
}
