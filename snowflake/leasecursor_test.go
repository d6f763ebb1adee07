package snowflake

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-id/leaf"
)

// A fakeLease grows when the test says so.
type fakeLease struct {
	worker, floor int64
	limit, needed atomic.Int64
	calls         atomic.Int64
}

func newFakeLease(worker, floor, limit int64) *fakeLease {
	l := &fakeLease{worker: worker, floor: floor}
	l.limit.Store(limit)
	return l
}

func (l *fakeLease) Worker() int64    { return l.worker }
func (l *fakeLease) Floor() time.Time { return time.UnixMilli(l.floor) }
func (*fakeLease) Shared() time.Time  { return time.Time{} }
func (l *fakeLease) Limit() time.Time { return time.UnixMilli(l.limit.Load()) }

func (l *fakeLease) Need(until time.Time) {
	l.calls.Add(1)
	for old := l.needed.Load(); until.UnixMilli() > old && !l.needed.CompareAndSwap(old, until.UnixMilli()); {
		old = l.needed.Load()
	}
}

func (l *fakeLease) grow(to int64) { l.limit.Store(max(l.limit.Load(), to)) }

// next is what Generator.Next does before it waits.
func (l *leaseCursor) next() (id int64, ok bool) {
	gate := l.gate.Load()
	if gate == 0 {
		return 0, false
	}
	end := l.cursor.Add(1)
	return l.compose(end - 1), end < gate || l.atGate(gate, end)
}

const start = 1_000_000 // Unix milliseconds

// A model is a lane and the test's own record of it.
type model struct {
	*leaseCursor
	lease     *fakeLease
	ahead     int64
	queue     waitQueue
	latest    int64 // the latest clock that the limit was raised by
	last      int64 // the last ID; -1: no ID yet
	firstTick int64
}

func drawModel(t *rapid.T) *model {
	layout := Layout{
		Epoch:        time.UnixMilli(rapid.Int64Range(start-100, start+5).Draw(t, "epoch")),
		Tick:         time.Duration(rapid.SampledFrom([]int64{1, 10, 1000}).Draw(t, "tick")) * time.Millisecond,
		TimeBits:     rapid.SampledFrom([]int{1, 3, 5, 20, 41}).Draw(t, "time"),
		WorkerBits:   rapid.IntRange(0, 10).Draw(t, "worker bits"),
		SequenceBits: rapid.SampledFrom([]int{0, 1, 2, 4, 12}).Draw(t, "sequence"),
	}
	lease := newFakeLease(rapid.Int64Range(0, layout.MaxWorker()).Draw(t, "worker"),
		rapid.Int64Range(start-50, start+50).Draw(t, "floor"), rapid.Int64Range(start-50, start+100).Draw(t, "limit"))
	m := &model{lease: lease, ahead: rapid.Int64Range(0, 30).Draw(t, "ahead"), last: -1}
	above := min(rapid.Int64Range(0, 3).Draw(t, "above"), layout.ticks())
	m.leaseCursor = newLeaseCursor(layout, lease, m.now(t), above, m.seq(t, layout))
	m.stock = newReserve(Reserve{
		Size:     rapid.SampledFrom([]int64{0, 1, 3, 100, math.MaxInt64}).Draw(t, "reserve"),
		Refill:   rapid.IntRange(1, 99).Draw(t, "refill"),
		Interval: time.Duration(rapid.IntRange(0, 50).Draw(t, "interval")) * time.Millisecond,
	})
	m.firstTick = max(above, layout.tickUp(lease.floor))
	return m
}

func (m *model) now(t *rapid.T) int64 { return start + rapid.Int64Range(-60, 200).Draw(t, "now") }

func (m *model) seq(t *rapid.T, l Layout) uint64 {
	return uint64(rapid.Int64Range(0, l.MaxSequence()).Draw(t, "seq"))
}

// issued checks an ID against the rules.
func (m *model) issued(t *rapid.T, id int64) {
	if id <= m.last {
		t.Fatalf("ID %d after %d", id, m.last)
	}
	m.last = id
	p, err := m.layout.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := m.layout.start(p.Tick), m.layout.start(p.Tick+1)
	switch {
	case p.Worker != m.lease.worker:
		t.Fatalf("worker ID %d", p.Worker)
	case p.Tick < m.firstTick || begin < m.lease.floor:
		t.Fatalf("tick %d begins %d before the floor", p.Tick, m.lease.floor-begin)
	case end > m.lease.Limit().UnixMilli():
		t.Fatalf("tick %d ends %d after the lease", p.Tick, end-m.lease.Limit().UnixMilli())
	case begin > m.latest+m.ahead:
		t.Fatalf("tick %d is %d ahead of the clock", p.Tick, begin-m.latest)
	}
}

func (m *model) ranges(t *rapid.T, ranges []leaf.Range) (n uint64) {
	for _, r := range ranges {
		if r.Empty() {
			t.Fatalf("range %v", r)
		}
		m.issued(t, r.Start)
		if r.Len() > 1 {
			m.issued(t, r.End-1)
		}
		n += uint64(r.Len())
	}
	return n
}

// Under every movement of the clock, the IDs of a lane increase and stay within the lease and the
// reach of the clock. Sealing returns the exact end.
func TestCursorModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "times") {
					if id, ok := m.next(); ok {
						m.issued(t, id)
					}
				}
			},
			"late": func(t *rapid.T) { // callers between the look at the gate and the add
				if m.gate.Load() > 0 {
					for range rapid.IntRange(1, 3).Draw(t, "callers") {
						m.gate.Store(m.limit)
						if id, ok := m.next(); ok {
							m.issued(t, id)
						}
					}
				}
			},
			"batch": func(t *rapid.T) {
				n := rapid.Uint64Range(1, 50).Draw(t, "n")
				if from, ok := m.batch(n, m.gate.Load()); ok {
					if got := m.ranges(t, m.appendRanges(nil, 0, from, from+n)); got != n {
						t.Fatalf("%d IDs of %d", got, n)
					}
				}
			},
			"wait": func(t *rapid.T) {
				w := m.queue.join(rapid.Uint64Range(1, 50).Draw(t, "n"))
				m.queue.serve(m.leaseCursor, true)
				if w.need > 0 && m.gate.Load() != 0 {
					t.Fatal("the gate is open while a call waits")
				}
				for _, p := range w.pieces {
					m.ranges(t, m.appendRanges(nil, 0, p.from, p.to))
				}
				if w.need > 0 {
					m.queue.leave(w)
				}
			},
			"beat": func(t *rapid.T) {
				now := m.now(t)
				m.latest = max(m.latest, now)
				before := m.limit
				backlog := rapid.Uint64Range(0, 60).Draw(t, "backlog")
				m.pull(now, m.seq(t, m.layout))
				m.raise(now, m.ahead, backlog)
				if m.limit < before {
					t.Fatalf("the limit fell from %d to %d", before, m.limit)
				}
				if m.stock.size > 0 && m.limit > max(before, m.cursor.Load()+max(m.stock.size, backlog)) {
					t.Fatalf("%d slots are open, with a reserve of %d and a backlog of %d", m.limit-m.cursor.Load(), m.stock.size, backlog)
				}
				m.queue.serve(m.leaseCursor, true)
				if tick := m.layout.tickDown(now); m.tickOf(m.cursor.Load()) < min(tick, m.tickOf(m.end)) {
					t.Fatalf("the cursor is behind tick %d", tick)
				}
			},
			"grow": func(t *rapid.T) { m.lease.grow(start + rapid.Int64Range(-50, 300).Draw(t, "limit")) },
			"look": func(*rapid.T) { m.account(m.cursor.Load()) },
		})
		want := int64(0)
		if m.last >= 0 {
			p, _ := m.layout.Decode(m.last)
			want = p.Tick + 1
		}
		gate := m.gate.Load()
		if got := m.seal(); got != want {
			t.Fatalf("sealed at tick %d, want %d", got, want)
		}
		m.gate.Store(gate) // a caller that read it before
		if id, ok := m.next(); ok {
			t.Fatalf("ID %d after the end", id)
		}
		if _, ok := m.batch(1, gate); ok {
			t.Fatal("a batch after the end")
		}
		m.pull(start+1000, 0)
		if m.cursor.Load() < sealed {
			t.Fatal("the clock has moved the end")
		}
	})
}

// A reserved slot beyond the limit is lost. It does not count as issued after the limit has passed
// it.
func TestCursorForgetsWhatWasLost(t *testing.T) {
	layout := Layout{time.UnixMilli(0), time.Millisecond, 41, 10, 1}
	l := newLeaseCursor(layout, newFakeLease(1, 0, math.MaxInt64), start, 0, 0)
	var queue waitQueue
	l.raise(start, 0, 0)
	queue.serve(l, true)
	gate := l.gate.Load()
	for i := range 5 { // all of them have seen the gate open
		l.gate.Store(gate)
		if _, ok := l.next(); ok != (i < 2) {
			t.Fatalf("call %d got an ID: %t", i, ok)
		}
	}
	l.raise(start+10, 0, 0)
	if l.issued != 2 {
		t.Errorf("%d issued, want 2", l.issued)
	}
	if above := l.seal(); above != start+1 {
		t.Errorf("sealed at tick %d, want %d", above, start+1)
	}
}

// The last ID of 63 bits is not issued, as no range could end after it; every other is.
func TestCursorAtTheEndOfTheLayout(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		worker int64
		want   int64 // IDs in the last tick
	}{
		{Layout{time.UnixMilli(0), time.Millisecond, 41, 10, 12}, 1023, 4095},
		{Layout{time.UnixMilli(0), time.Millisecond, 41, 10, 12}, 1022, 4096},
		{Layout{time.UnixMilli(0), time.Millisecond, 41, 5, 7}, 31, 128},
		{Layout{time.UnixMilli(0), time.Millisecond, 1, 0, 62}, 0, 1<<62 - 1},
		{Layout{time.UnixMilli(-1000), time.Millisecond, 62, 1, 0}, 1, 0},
	} {
		last := tt.layout.Last().UnixMilli()
		l := newLeaseCursor(tt.layout, newFakeLease(tt.worker, last, math.MaxInt64), last, 0, 0)
		l.raise(last, 100, 0)
		from, to := l.reserve(1<<62, l.limit)
		if got := int64(to - from); got != tt.want {
			t.Errorf("%+v: %d IDs, want %d", tt.layout, got, tt.want)
		}
		if got := l.appendRanges(nil, 0, from, to); tt.want > 0 && (len(got) != 1 || got[0].Len() != tt.want || got[0].Start < 0) {
			t.Errorf("%+v: ranges %v", tt.layout, got)
		}
		l.pull(last+1, 0)
		if l.cursor.Load() != l.end {
			t.Errorf("%+v: the cursor is not at the end when the layout has run out", tt.layout)
		}
	}
}
