package snowflake

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// A Layout splits an ID into time, worker ID and sequence, from the highest bit to
// the lowest. Other methods than Check need a layout that passes Check.
type Layout struct {
	// Epoch is where ticks are counted from: whole milliseconds, years 1 to 9999.
	Epoch time.Time

	// Tick is the unit of time: a whole number of milliseconds, at least one.
	Tick time.Duration

	// The widths: at least 1, 0 and 0; together at most 63.
	TimeBits, WorkerBits, SequenceBits int
}

// Parts are the fields of an ID.
type Parts struct {
	Time     time.Time // the beginning of the tick, in UTC
	Tick     int64     // ticks since the epoch
	Worker   int64
	Sequence int64
}

// Check returns an error that wraps [leaf.ErrInvalid] if no IDs can be made in l.
func (l Layout) Check() error {
	switch {
	case l.Epoch.IsZero():
		return fmt.Errorf("layout: %w: it has no epoch", leaf.ErrInvalid)
	case l.Epoch.Year() < 1 || l.Epoch.Year() > 9999:
		return fmt.Errorf("layout: %w: the epoch is in the year %d, not in 1 … 9999", leaf.ErrInvalid, l.Epoch.Year())
	case l.Epoch.Nanosecond()%int(time.Millisecond) != 0:
		return fmt.Errorf("layout: %w: the epoch %v is not a whole millisecond", leaf.ErrInvalid, l.Epoch)
	case l.Tick < time.Millisecond || l.Tick%time.Millisecond != 0:
		return fmt.Errorf("layout: %w: the tick %v is not a whole number of milliseconds", leaf.ErrInvalid, l.Tick)
	case !within(l.TimeBits, 1) || !within(l.WorkerBits, 0) || !within(l.SequenceBits, 0) || l.bits() > 63:
		return fmt.Errorf("layout: %w: %d time, %d worker and %d sequence bits; needed are at least 1, 0 and 0, at most 63 in all",
			leaf.ErrInvalid, l.TimeBits, l.WorkerBits, l.SequenceBits)
	}
	return nil
}

func within(bits, least int) bool { return least <= bits && bits <= 63 }

// Compose returns the ID of a sequence number in a tick of a worker. The error wraps
// [leaf.ErrInvalid] if one of them does not fit, or the layout is not valid.
func (l Layout) Compose(tick, worker, sequence int64) (int64, error) {
	if err := l.Check(); err != nil {
		return 0, err
	}
	switch {
	case tick < 0 || tick > most(l.TimeBits):
		return 0, fmt.Errorf("compose: %w: tick %d is not in 0 … %d", leaf.ErrInvalid, tick, most(l.TimeBits))
	case worker < 0 || worker > l.MaxWorker():
		return 0, fmt.Errorf("compose: %w: worker ID %d is not in 0 … %d", leaf.ErrInvalid, worker, l.MaxWorker())
	case sequence < 0 || sequence > l.MaxSequence():
		return 0, fmt.Errorf("compose: %w: sequence number %d is not in 0 … %d", leaf.ErrInvalid, sequence, l.MaxSequence())
	}
	return tick<<(l.WorkerBits+l.SequenceBits) | worker<<l.SequenceBits | sequence, nil
}

// Decode returns what id says. A time beyond the last Unix millisecond that an int64
// holds, in the year 292,278,994, reads as that one. The error wraps
// [leaf.ErrInvalid] if id has bits that the layout does not, or the layout is not valid.
func (l Layout) Decode(id int64) (Parts, error) {
	if err := l.Check(); err != nil {
		return Parts{}, err
	}
	if largest := most(l.bits()); id < 0 || id > largest {
		return Parts{}, fmt.Errorf("decode: %w: %d is not in 0 … %d", leaf.ErrInvalid, id, largest)
	}
	tick := id >> (l.WorkerBits + l.SequenceBits)
	return Parts{
		Time:     l.Start(tick),
		Tick:     tick,
		Worker:   id >> l.SequenceBits & l.MaxWorker(),
		Sequence: id & l.MaxSequence(),
	}, nil
}

// MaxWorker returns the largest worker ID.
func (l Layout) MaxWorker() int64 { return most(l.WorkerBits) }

// MaxSequence returns the largest sequence number.
func (l Layout) MaxSequence() int64 { return most(l.SequenceBits) }

// First returns the first time that an ID can carry, the epoch, in UTC.
func (l Layout) First() time.Time { return l.Epoch.UTC() }

// Last returns the last time in an ID, in UTC: the beginning of the last tick. After it the layout
// issues no ID.
func (l Layout) Last() time.Time { return l.Start(l.ticks() - 1) }

// Record returns l for a worker record, under the name of its IDs.
func (l Layout) Record(name string) worker.ServedLayout {
	return worker.ServedLayout{
		Name:         name,
		Epoch:        l.epoch(),
		Tick:         l.tick(),
		TimeBits:     l.TimeBits,
		WorkerBits:   l.WorkerBits,
		SequenceBits: l.SequenceBits,
	}
}

// tickUp returns the first tick that begins at ms, in Unix milliseconds, or later. It returns 0 for
// times before the epoch, and one past the last tick if no such tick exists.
func (l Layout) tickUp(ms int64) int64 {
	if ms <= l.epoch() {
		return 0
	}
	since, tick := l.since(ms), uint64(l.tick())
	up := since / tick
	if since%tick != 0 {
		up++
	}
	return int64(min(up, uint64(l.ticks())))
}

// tickDown returns the tick at ms, in Unix milliseconds: all ticks before it end before ms. It
// returns 0 for times before the epoch, and one past the last tick for later times.
func (l Layout) tickDown(ms int64) int64 {
	if ms <= l.epoch() {
		return 0
	}
	return int64(min(l.since(ms)/uint64(l.tick()), uint64(l.ticks())))
}

// Start returns the beginning of a tick, in UTC; see [Layout.Decode]. The tick must not be
// negative.
func (l Layout) Start(tick int64) time.Time { return time.UnixMilli(l.start(tick)).UTC() }

// TickAt returns the tick at t: 0 for times before the epoch, and one past the last tick for times
// after it.
func (l Layout) TickAt(t time.Time) int64 { return l.tickDown(t.UnixMilli()) }

// start returns when a tick begins, in Unix milliseconds, at most the largest int64.
func (l Layout) start(tick int64) int64 {
	over, ms := bits.Mul64(uint64(tick), uint64(l.tick()))
	if over != 0 || ms > l.since(math.MaxInt64) {
		return math.MaxInt64
	}
	return int64(uint64(l.epoch()) + ms)
}

// ticks returns the number of ticks: those with enough bits that end within the Unix milliseconds
// of an int64.
func (l Layout) ticks() int64 {
	return int64(min(l.since(math.MaxInt64)/uint64(l.tick()), uint64(1)<<l.TimeBits, math.MaxInt64))
}

// since returns the milliseconds from the epoch to ms, which must not be before it. With an epoch
// before 1970 they may not fit into an int64.
func (l Layout) since(ms int64) uint64 { return uint64(ms) - uint64(l.epoch()) }

func (l Layout) epoch() int64 { return l.Epoch.UnixMilli() }
func (l Layout) tick() int64  { return int64(l.Tick / time.Millisecond) }
func (l Layout) bits() int    { return l.TimeBits + l.WorkerBits + l.SequenceBits }

// most returns the largest number of that many bits.
func most(bits int) int64 { return int64(uint64(1)<<bits - 1) }
