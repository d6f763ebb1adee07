package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

const tag = "bench"

// rows in the order of the table. The first one is what the others are compared with.
var rows = []row{
	{name: "bare atomic add", open: one(func() (source, error) { return new(counter), nil })},
	{name: "`segment.Buffer.Next`", open: one(func() (source, error) { return newBuffer() })},
	{name: "`segment.Set.Next`, by name", open: one(newNamed)},
	{name: "`segment.Cursor`, one each", open: cursors},
	{name: "`segment.Buffer.Take`, 1000, per ID", per: 1000, open: takes},
	{name: "Java Leaf's design: RWMutex", open: one(func() (source, error) { return newPair() })},
	{name: "CosId `SegmentChainId` (JVM)", jvm: "cosid-segment-chain"},
	{name: "`snowflake.Generator`, burst", open: one(func() (source, error) { return newSnowflake(1000 * time.Hour) })},
	{name: "`snowflake.Generator`, sustained", open: one(func() (source, error) { return newSnowflake(10 * time.Millisecond) })},
	{name: "bwmarrin/snowflake", open: one(newBwmarrin)},
	{name: "sonyflake v2, default", open: one(newSonyflake)},
	{name: "yitter/idgenerator-go, default", open: one(newYitter)},
	{name: "CosId snowflake (JVM)", jvm: "cosid-snowflake"},
	{name: "`snowflake.Generator`, uid cached", open: one(newCached)},
	{name: "uid-generator cached (JVM)", jvm: "uid-generator-cached"},
	{name: "xid", open: one(text(func() byte { return xid.New()[11] }))},
	{name: "ulid", open: one(text(func() byte { return ulid.Make()[15] }))},
	{name: "ksuid", open: one(text(func() byte { return ksuid.New()[19] }))},
	{name: "uuid v4", open: one(text(func() byte { return uuid.New()[15] }))},
	{name: "uuid v7", open: one(text(func() byte { return uuid.Must(uuid.NewV7())[15] }))},
	{name: "AtomicLong (JVM)", jvm: "atomiclong"},
}

// one opens a source that all goroutines share.
func one(open func() (source, error)) func() (func() source, error) {
	return func() (func() source, error) {
		s, err := open()
		return func() source { return s }, err
	}
}

// A counter is the floor. The padding keeps other data off its cache line.
type counter struct {
	_ [64]byte
	n atomic.Int64
	_ [64]byte
}

func (c *counter) Next(context.Context) (int64, error) { return c.n.Add(1), nil }

func newStore() (segment.Store, error) {
	store := memory.New()
	return store, store.Create(context.Background(), segment.Tag{Name: tag, MaxID: 1, Step: 1_000_000})
}

func newBuffer() (*segment.Buffer, error) {
	store, err := newStore()
	return segment.NewBuffer(store, tag, nil), err
}

// A named looks the buffer up by its tag each time, as a server does.
type named struct{ set *segment.Set }

func newNamed() (source, error) {
	store, err := newStore()
	return named{segment.NewSet(store, nil)}, err
}

func (n named) Next(ctx context.Context) (int64, error) { return n.set.Next(ctx, tag) }

func cursors() (func() source, error) {
	b, err := newBuffer()
	return func() source { return b.Cursor(0) }, err
}

// A taker takes 1000 IDs at a time into a slice of its own.
type taker struct {
	ids    leaf.Generator
	ranges []leaf.Range
}

func takes() (func() source, error) {
	b, err := newBuffer()
	return func() source { return &taker{ids: b} }, err
}

func (t *taker) Next(ctx context.Context) (n int64, err error) {
	t.ranges, err = t.ids.Take(ctx, t.ranges[:0], 1000)
	return 0, err
}

func newSnowflake(ahead time.Duration) (source, error) {
	layout, _ := snowflake.Preset("leaf")
	return begin(layout, &snowflake.Options{MaxAhead: ahead, Wait: time.Minute})
}

// newCached is uid's cached mode with 22 bits of sequence, 4,194,304 IDs a second.
func newCached() (source, error) {
	layout := snowflake.Layout{Epoch: time.Unix(1463673600, 0), Tick: time.Second, TimeBits: 31, WorkerBits: 10, SequenceBits: 22}
	return begin(layout, &snowflake.Options{
		MaxAhead: 1000 * time.Hour, Wait: time.Minute, Reserve: snowflake.Reserve{Size: (layout.MaxSequence() + 1) << 3},
	})
}

func begin(layout snowflake.Layout, opts *snowflake.Options) (source, error) {
	ids, err := snowflake.New(layout, opts)
	if err != nil {
		return nil, err
	}
	ids.Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
	return ids, nil
}

type bwmarrinIDs struct{ node *bwmarrin.Node }

func newBwmarrin() (source, error) {
	node, err := bwmarrin.NewNode(1)
	return bwmarrinIDs{node}, err
}

func (b bwmarrinIDs) Next(context.Context) (int64, error) { return b.node.Generate().Int64(), nil }

type sonyflakeIDs struct{ s *sonyflake.Sonyflake }

func newSonyflake() (source, error) {
	s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }})
	return sonyflakeIDs{s}, err
}

func (s sonyflakeIDs) Next(context.Context) (int64, error) { return s.s.NextID() }

type yitterIDs struct{ g *idgen.DefaultIdGenerator }

func newYitter() (source, error) {
	return yitterIDs{idgen.NewDefaultIdGenerator(idgen.NewIdGeneratorOptions(1))}, nil
}

func (y yitterIDs) Next(context.Context) (int64, error) { return y.g.NewLong(), nil }

// textIDs makes IDs that are no numbers; a byte of them says that they were made.
type textIDs func() byte

func text(next func() byte) func() (source, error) {
	return func() (source, error) { return textIDs(next), nil }
}

func (t textIDs) Next(context.Context) (int64, error) { return int64(t()), nil }

// A pair does what a Buffer does in the way of Java Leaf: two segments, an atomic add under
// the shared side of a read-write lock, the next segment loaded once a tenth of the current
// one is used, the switch under the exclusive side.
type pair struct {
	store segment.Store

	mu      sync.RWMutex
	half    [2]half
	current int
	ready   bool // the other half is loaded
	loading atomic.Bool
}

type half struct{ next, end, size int64 }

func newPair() (source, error) {
	store, err := newStore()
	p := &pair{store: store}
	if err == nil {
		err = p.load()
	}
	p.turn()
	return p, err
}

func (p *pair) Next(context.Context) (int64, error) {
	for {
		if id, ok := p.draw(); ok {
			return id, nil
		}
		if !p.turn() {
			time.Sleep(time.Microsecond)
		}
	}
}

func (p *pair) draw() (id int64, ok bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	h := &p.half[p.current]
	if !p.ready && h.end-atomic.LoadInt64(&h.next) < h.size/10*9 && p.loading.CompareAndSwap(false, true) {
		go func() {
			defer p.loading.Store(false)
			_ = p.load() // a store in memory does not fail
		}()
	}
	id = atomic.AddInt64(&h.next, 1) - 1
	return id, id < h.end
}

func (p *pair) load() error {
	grant, err := p.store.Advance(context.Background(), tag, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.half[1-p.current] = half{next: grant.Range.Start, end: grant.Range.End, size: grant.Range.Len()}
	p.ready = err == nil
	return err
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
