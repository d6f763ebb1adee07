package drivertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

func swapRules() []registryRule {
	return []registryRule{
		{"swap/absent", "a cell that was never written holds a zero record with its worker ID, and a look at it writes nothing", absent},
		{"swap/create", "a swap from the zero record fills a cell that was never written, and only that one", createCell},
		{"swap/replace", "a swap from what the cell holds replaces it as a whole", replaceCell},
		{"swap/other record", "a swap from anything but what the cell holds conflicts, whichever field differs, and changes nothing",
			otherRecord},
		{"swap/version", "the version of a swap, a load or a listing stands for the record, until the cell is written again", versions},
		{"swap/repeated", "a swap that is sent again conflicts, and changes nothing", repeatedSwap},
		{"swap/to the same", "a swap to what the cell holds already succeeds, and still conflicts where the cell holds something else",
			swapToSame},
		{"swap/invalid", "records of two workers, a negative worker and an empty new record are refused, and nothing changes", invalidSwap},
		{"swap/racing creation", "of several clients that fill one cell at once exactly one wins, and its record stands", racingCreation},
		{"swap/racing", "of several clients that replace one record at once exactly one wins, and its record stands", racingSwap},
		{"swap/chain", "clients that count up one cell together lose no step and win none twice", chain},
		{"swap/neighbours", "clients at work on cells of their own are never in conflict", neighbours},
	}
}

func absent(ctx context.Context, b *registryFixture) error {
	r := b.open()
	for _, id := range []int64{0, 1, 1023, 524287} {
		if err := holds(ctx, r, never(id)); err != nil {
			return err
		}
	}
	return listed(ctx, r)
}

func createCell(ctx context.Context, b *registryFixture) error {
	r, record := b.open(), claimed(7, 1)
	return first(
		swap(ctx, r, never(7), record),
		holds(ctx, r, record),
		holds(ctx, r, never(6)),
		holds(ctx, r, never(8)),
		listed(ctx, r, record))
}

func replaceCell(ctx context.Context, b *registryFixture) error {
	r := b.open()
	old := never(7)
	for term := range int64(5) {
		record := claimed(7, term+1)
		if err := first(swap(ctx, r, old, record), holds(ctx, r, record)); err != nil {
			return err
		}
		old = record
	}
	// The other fields do not decide the rank of a record: a swap replaces all of it.
	bare := worker.Record{Worker: 7, Term: 3}
	return first(swap(ctx, r, old, bare), holds(ctx, r, bare), listed(ctx, r, bare))
}

// differing returns records that each differ from r in one field.
func differing(r worker.Record) map[string]worker.Record {
	all := make(map[string]worker.Record)
	edit := func(what string, change func(*worker.Record)) {
		other := r
		other.Layouts = append([]worker.ServedLayout(nil), r.Layouts...)
		change(&other)
		all["a record with "+what] = other
	}
	edit("another instance", func(o *worker.Record) { o.Instance = worker.NewInstance() })
	edit("an instance of one other bit", func(o *worker.Record) { o.Instance[15] ^= 1 })
	edit("no instance", func(o *worker.Record) { o.Instance = worker.Instance{} })
	edit("another term", func(o *worker.Record) { o.Term++ })
	edit("another horizon", func(o *worker.Record) { o.Horizon = o.Horizon.Add(-time.Millisecond) })
	edit("another owner", func(o *worker.Record) { o.Owner += "x" })
	edit("an owner in capitals", func(o *worker.Record) { o.Owner = "NODE-1:8080" })
	edit("an owner with a space behind", func(o *worker.Record) { o.Owner += " " })
	edit("an owner with an accent", func(o *worker.Record) { o.Owner = "nöde-1:8080" })
	edit("another time", func(o *worker.Record) { o.Seen = o.Seen.Add(time.Millisecond) })
	edit("another offset", func(o *worker.Record) { o.Offset = -o.Offset })
	edit("another incarnation", func(o *worker.Record) { o.Incarnation += "x" })
	edit("another time of its incarnation", func(o *worker.Record) { o.Since = o.Since.Add(time.Millisecond) })
	edit("another claim delay", func(o *worker.Record) { o.ClaimDelay += time.Millisecond })
	edit("another floor", func(o *worker.Record) { o.Floor = time.UnixMilli(1) })
	edit("a pool", func(o *worker.Record) { o.Pool.Name = "x" })
	edit("no layouts", func(o *worker.Record) { o.Layouts = nil })
	edit("fewer layouts", func(o *worker.Record) { o.Layouts = o.Layouts[:1] })
	edit("another layout", func(o *worker.Record) { o.Layouts[1].Epoch++ })
	edit("another name of a layout", func(o *worker.Record) { o.Layouts[1].Name = "Uid" })
	all["the zero record"] = never(r.Worker)
	return all
}

func otherRecord(ctx context.Context, b *registryFixture) error {
	r, record := b.open(), claimed(7, 5)
	if err := conflicts(ctx, r, "a record that was never written", record, claimed(7, 6), never(7)); err != nil {
		return err
	}
	if err := first(listed(ctx, r), swap(ctx, r, never(7), record)); err != nil {
		return err
	}
	for what, other := range differing(record) {
		if err := conflicts(ctx, r, what, other, claimed(7, 6), record); err != nil {
			return err
		}
	}
	return listed(ctx, r, record)
}

// versions does nothing for a registry without versions.
func versions(ctx context.Context, b *registryFixture) error {
	r, other := b.open(), b.open()
	one, err := r.Swap(ctx, never(7), claimed(7, 1))
	if err != nil || one.Version == "" {
		return err
	}
	swapped := func() (worker.Record, error) { return one, nil }
	sources := []func() (worker.Record, error){swapped, swapped,
		func() (worker.Record, error) { return other.Load(ctx, 7) },
		func() (worker.Record, error) {
			all, err := other.List(ctx)
			if err == nil && len(all) != 1 {
				err = fmt.Errorf("%d records are listed, want 1", len(all))
			}
			return append(all, never(7))[0], err
		},
	}
	for i, source := range sources {
		old, err := source()
		if err != nil {
			return err
		}
		if one, err = replaceByVersion(ctx, r, old, claimed(7, int64(i+2))); err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
	}
	neighbour, err := r.Swap(ctx, never(8), claimed(8, 1))
	if err != nil {
		return err
	}
	foreign := worker.Record{Worker: 7, Version: neighbour.Version}
	return conflicts(ctx, r, "the version of another cell", foreign, claimed(7, 9), one)
}

// replaceByVersion swaps with the version of old alone. Then that version must conflict, even with
// the present content.
func replaceByVersion(ctx context.Context, r worker.Registry, old, new worker.Record) (worker.Record, error) {
	now, err := r.Swap(ctx, worker.Record{Worker: old.Worker, Version: old.Version}, new)
	if err != nil {
		return worker.Record{}, fmt.Errorf("swap from version %q: %w", old.Version, err)
	}
	stale := now
	stale.Version = old.Version
	again := claimed(new.Worker, new.Term+1)
	return now, first(
		holds(ctx, r, new),
		holds(ctx, r, now),
		conflicts(ctx, r, "a stale version", stale, again, new),
		conflicts(ctx, r, "the old record", old, again, new))
}

func repeatedSwap(ctx context.Context, b *registryFixture) error {
	r, one, two := b.open(), claimed(7, 1), claimed(7, 2)
	f := &FaultyRegistry{Registry: r}
	f.Next(OpSwap, Fault{After: errReplyLost}, Fault{}, Fault{After: errReplyLost})
	return first(
		is("swap", attempt(ctx, f, never(7), one), errReplyLost),
		conflicts(ctx, f, "the zero record, again", never(7), one, one),
		is("swap", attempt(ctx, f, one, two), errReplyLost),
		conflicts(ctx, f, "the first record, again", one, two, two))
}

func swapToSame(ctx context.Context, b *registryFixture) error {
	r, one, two := b.open(), claimed(7, 1), claimed(7, 2)
	return first(
		conflicts(ctx, r, "a record that was never written", one, one, never(7)),
		swap(ctx, r, never(7), one),
		swap(ctx, r, one, one),
		swap(ctx, r, one, one),
		holds(ctx, r, one),
		conflicts(ctx, r, "another record", two, two, one))
}

func invalidSwap(ctx context.Context, b *registryFixture) error {
	r, one := b.open(), claimed(7, 1)
	if err := swap(ctx, r, never(7), one); err != nil {
		return err
	}
	_, loadErr := r.Load(ctx, -1)
	return first(
		is("swap from a record of another worker", attempt(ctx, r, never(8), claimed(7, 2)), leaf.ErrInvalid),
		is("swap to a record of another worker", attempt(ctx, r, one, claimed(8, 2)), leaf.ErrInvalid),
		is("swap of worker -1", attempt(ctx, r, never(-1), claimed(-1, 1)), leaf.ErrInvalid),
		is("load of worker -1", loadErr, leaf.ErrInvalid),
		is("swap to the zero record", attempt(ctx, r, one, never(7)), leaf.ErrInvalid),
		is("swap from the zero record to itself", attempt(ctx, r, never(9), never(9)), leaf.ErrInvalid),
		listed(ctx, r, one))
}

// racers is the number of clients of a race, and of goroutines on each of them.
const racers, perRacer = 4, 2

// A contest is swaps of one record, each for a record of its own. One has to win.
type contest struct {
	old     worker.Record
	swaps   atomic.Int64
	winners atomic.Int64
	winner  atomic.Pointer[worker.Record]
}

func (c *contest) swap(ctx context.Context, r worker.Registry) error {
	c.swaps.Add(1)
	record := claimed(c.old.Worker, c.old.Term+1)
	ok, err := won(attempt(ctx, r, c.old, record))
	if ok {
		c.winners.Add(1)
		c.winner.Store(&record)
	}
	return err
}

// result returns the winner's record, after the first error of a swap.
func (c *contest) result(ctx context.Context, clients []worker.Registry, err error) (worker.Record, error) {
	if err != nil {
		return worker.Record{}, fmt.Errorf("swap of worker %d: %w", c.old.Worker, err)
	}
	if n := c.winners.Load(); n != 1 {
		return worker.Record{}, fmt.Errorf("%d of %d swaps won worker %d with term %d, want 1", n, c.swaps.Load(), c.old.Worker, c.old.Term+1)
	}
	return *c.winner.Load(), first(holds(ctx, clients[0], *c.winner.Load()), holds(ctx, clients[1], *c.winner.Load()))
}

// race has all clients swap old for a record of their own, and returns the winner's.
func race(ctx context.Context, clients []worker.Registry, old worker.Record) (worker.Record, error) {
	c := contest{old: old}
	err := together(len(clients)*perRacer, func(i int) error { return c.swap(ctx, clients[i%len(clients)]) })
	return c.result(ctx, clients, err)
}

// duel has one client swap old amid the swap of another one.
func duel(ctx context.Context, clients []worker.Registry, old worker.Record, looks int64) (worker.Record, error) {
	c := contest{old: old}
	var others error
	m := meets(ctx, looks, func() { others = c.swap(ctx, clients[1]) })
	err := c.swap(m, clients[0])
	if m.wait() {
		err = first(err, others)
	}
	return c.result(ctx, clients, err)
}

func racingCreation(ctx context.Context, b *registryFixture) error {
	clients := b.clients(racers)
	for looks := range looksOfACall {
		if _, err := duel(ctx, clients, never(100+looks), looks); err != nil {
			return err
		}
	}
	for id := range int64(25) {
		if _, err := race(ctx, clients, never(id)); err != nil {
			return err
		}
	}
	return nil
}

func racingSwap(ctx context.Context, b *registryFixture) error {
	clients := b.clients(racers)
	old := claimed(7, 1)
	err := swap(ctx, clients[0], never(7), old)
	for looks := int64(0); looks < looksOfACall && err == nil; looks++ {
		old, err = duel(ctx, clients, old, looks)
	}
	if err != nil {
		return err
	}
	for range 25 {
		record, err := race(ctx, clients, old)
		if err != nil {
			return err
		}
		old = record
	}
	return nil
}

func chain(ctx context.Context, b *registryFixture) error {
	const each = 15
	clients := b.clients(racers)
	wins := make([]atomic.Int64, racers*each+2)
	err := together(racers, func(i int) error {
		for range each {
			term, err := countUp(ctx, clients[i])
			if err != nil {
				return err
			}
			wins[min(int(term), len(wins)-1)].Add(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for term := 1; term <= racers*each; term++ {
		if n := wins[term].Load(); n != 1 {
			return fmt.Errorf("term %d of %d was won %d times", term, racers*each, n)
		}
	}
	last, err := b.open().Load(ctx, 7)
	if err == nil && last.Term != racers*each {
		err = fmt.Errorf("%d clients counted to %d, %d times each", racers, last.Term, each)
	}
	return err
}

// countUp raises the term of worker 7 by one, however often it takes, and returns it.
func countUp(ctx context.Context, r worker.Registry) (int64, error) {
	for {
		old, err := r.Load(ctx, 7)
		if err != nil {
			return 0, fmt.Errorf("load: %w", err)
		}
		ok, err := won(attempt(ctx, r, old, claimed(7, old.Term+1)))
		if err != nil {
			return 0, fmt.Errorf("swap: %w", err)
		}
		if ok {
			return old.Term + 1, nil
		}
	}
}

func neighbours(ctx context.Context, b *registryFixture) error {
	clients := b.clients(racers)
	return together(racers*perRacer, func(i int) error {
		r, old := clients[i%racers], never(int64(i))
		for term := range int64(10) {
			record := claimed(old.Worker, term+1)
			if err := first(swap(ctx, r, old, record), holds(ctx, r, record)); err != nil {
				return err
			}
			old = record
		}
		return nil
	})
}
