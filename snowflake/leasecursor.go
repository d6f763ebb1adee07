package snowflake

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
)

// sealed is the cursor after the end of its lease. It is not below any limit: a tick and a
// sequence number have 63 bits at most.
const sealed = 1 << 63

// A lease is a [worker.Lease], or that of a test.
type lease interface {
	Worker() int64
	Floor() time.Time
	Shared() time.Time
	Limit() time.Time
	Need(until time.Time)
}

// A leaseCursor is a lease and the cursor under it. It counts in slots: a slot is
// tick<<sequenceBits | sequence, and gives one ID. The cursor is the next slot that no caller has
// reserved. It only grows; so does the limit, the first slot that may not be issued yet.
//
// It knows no clock: now is an argument, in Unix milliseconds, and may go backwards.
type leaseCursor struct {
	// What every call reads. gate is the limit if callers may add to the cursor, else
	// 0. Callers shut it; it is opened only under the generator's lock.
	gate atomic.Uint64
	form

	_      [128]byte // the cursor's cache line, and the one fetched with it, are its own
	cursor atomic.Uint64
	_      [128]byte

	// The rest belongs to the generator's lock.
	layout  Layout
	lease   lease
	stock   reserve
	end     uint64 // one past the last slot of the layout
	first   uint64 // where the cursor began
	limit   uint64
	base    uint64 // account has counted the slots below this cursor; those beyond were reserved
	last    uint64 // one past the last reserved slot below base; 0: no such slot
	issued  uint64 // how many were
	allowed struct {
		clock, lease uint64 // the limits that each sets, as of the last raise
	}
}

// A form makes IDs of slots.
type form struct {
	prefix uint64 // the worker ID in its place
	mask   uint64 // the sequence bits of a slot
	shift  uint   // the worker bits
}

// compose returns the ID of a slot.
func (f form) compose(slot uint64) int64 {
	return int64((slot&^f.mask)<<(f.shift&63) | f.prefix | slot&f.mask)
}

// newLeaseCursor returns a cursor that begins at the lease's floor, now, or the tick above,
// whichever is last, with the sequence number seq. Its gate is shut.
func newLeaseCursor(layout Layout, lease lease, now, above int64, seq uint64) *leaseCursor {
	l := &leaseCursor{
		form: form{
			prefix: uint64(lease.Worker()) << layout.SequenceBits,
			mask:   uint64(layout.MaxSequence()),
			shift:  uint(layout.WorkerBits),
		},
		layout: layout,
		lease:  lease,
	}
	l.end = l.slot(layout.ticks())
	if l.compose(l.end-1) == math.MaxInt64 {
		l.end-- // a Range could not end after it
	}
	floor := layout.tickUp(lease.Floor().UnixMilli())
	l.first = l.at(max(floor, layout.tickDown(now), above), seq)
	l.base = l.first
	l.cursor.Store(l.first)
	return l
}

// slot returns the first slot of a tick.
func (l *leaseCursor) slot(tick int64) uint64 { return uint64(tick) << l.layout.SequenceBits }

// at returns the slot of seq in a tick, at most the end of the layout.
func (l *leaseCursor) at(tick int64, seq uint64) uint64 { return min(l.slot(tick)|seq, l.end) }

// tickOf returns the tick of a slot.
func (l *leaseCursor) tickOf(slot uint64) int64 { return int64(slot >> l.layout.SequenceBits) }

// appendRanges appends the IDs of the slots from … to-1 to dst: a range for each tick,
// joined where they touch. The first keep ranges of dst are left alone.
func (l *leaseCursor) appendRanges(dst []leaf.Range, keep int, from, to uint64) []leaf.Range {
	for from < to {
		next := min(to, from|l.mask+1)
		start := l.compose(from)
		r := leaf.Range{Start: start, End: start + int64(next-from)}
		if i := len(dst) - 1; i >= keep && dst[i].End == r.Start {
			dst[i].End = r.End
		} else {
			dst = append(dst, r)
		}
		from = next
	}
	return dst
}

// atGate shuts the gate after a reservation that ended at or beyond it. Only the slot just
// below the gate may be issued; one beyond is lost.
func (l *leaseCursor) atGate(gate, end uint64) (ok bool) {
	l.gate.CompareAndSwap(gate, 0)
	return end == gate
}

// reserve takes up to n slots below limit.
func (l *leaseCursor) reserve(n, limit uint64) (from, to uint64) {
	for {
		from = l.cursor.Load()
		if from >= limit {
			return from, from
		}
		to = min(from+n, limit)
		if l.cursor.CompareAndSwap(from, to) {
			return from, to
		}
	}
}

// pull moves the cursor up to the tick of now, at the sequence number seq, if it is in
// an earlier one.
func (l *leaseCursor) pull(now int64, seq uint64) {
	tick := l.layout.tickDown(now)
	to := l.at(tick, seq)
	for {
		old := l.cursor.Load()
		if old >= to || tick <= l.tickOf(old) {
			return
		}
		if l.cursor.CompareAndSwap(old, to) {
			l.account(old)
			l.base = to
			return
		}
	}
}

// account notes that the slots from base up to the cursor were reserved. Those at or
// beyond the limit were not issued: no gate was higher.
func (l *leaseCursor) account(cursor uint64) {
	if to := min(cursor, l.limit); to > l.base {
		l.issued += to - l.base
		l.last = to
	}
	l.base = max(l.base, cursor)
}

// raise moves the limit up to the bound of the lease and the clock, or of the reserve. A tick may
// begin ahead milliseconds before the clock. Waiting callers lack backlog slots.
func (l *leaseCursor) raise(now, ahead int64, backlog uint64) {
	cursor := l.cursor.Load()
	l.account(cursor) // now, while the lost slots beyond the limit are known
	l.allowed.clock = l.clockLimit(now + ahead)
	l.allowed.lease = min(l.slot(l.layout.tickDown(l.lease.Limit().UnixMilli())), l.end)
	left := l.limit - min(cursor, l.limit)
	if fill, due := l.stock.fill(now, left, backlog); due {
		l.limit = max(l.limit, min(l.allowed.clock, l.allowed.lease, satAdd(cursor, fill)))
	}
}

// satAdd returns a+b, at most the largest uint64.
func satAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// clockLimit returns one past the last slot of the tick at ms.
func (l *leaseCursor) clockLimit(ms int64) uint64 {
	if ms < l.layout.epoch() {
		return 0
	}
	return min(l.slot(min(l.layout.tickDown(ms)+1, l.layout.ticks())), l.end)
}

// seal ends the cursor and returns the tick after the last reserved one, 0 without any.
func (l *leaseCursor) seal() (above int64) {
	l.gate.Store(0)
	l.account(l.cursor.Swap(sealed))
	if l.last == 0 {
		return 0
	}
	return l.tickOf(l.last-1) + 1
}
