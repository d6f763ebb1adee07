package drivertest

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/worker"
)

func recordRules() []registryRule {
	return []registryRule{
		{"record/round trip", "every field comes back as it was written, whatever it holds", roundTrips},
		{"record/worker IDs", "worker IDs of 19 bits have a cell each, and so have those of pools", workerIDs},
		{"record/fresh", "what one client has written every other loads and lists at once", fresh},
		{"record/permanent", "the cell of a worker without a holder keeps its record", permanent},
		{"record/newer", "a record of a newer release is an error that says so and names the worker, and is not overwritten", newerRecord},
		{"record/garbage", "a cell that cannot be read is an error that names the worker, and is not overwritten", garbage},
		{"list/all", "every cell that was ever written is listed once, by worker ID, and nothing else", listCells},
		{"list/many", "hundreds of cells are listed once each, by worker ID", listMany},
		{"clock", "the clock is the zero time, or within a minute of this machine's and never goes backwards", registryClock},
		{"epoch", "a registry that may lose writes can tell, and names one incarnation to all clients while its server stands", serverEpochs},
		{"pools", "programs lease, renew and release worker IDs of a pool through any client", pools},
	}
}

// oddRecords are hard to store.
func oddRecords() []worker.Record {
	var layouts []worker.ServedLayout
	for i := range 60 {
		layouts = append(layouts, worker.ServedLayout{Name: fmt.Sprintf("layout-%02d", i), Epoch: int64(i), Tick: 10, TimeBits: 41,
			WorkerBits: 10, SequenceBits: 12})
	}
	const longest = math.MaxInt64 / time.Millisecond * time.Millisecond
	full := worker.Instance([]byte("\x00\x01\x7f\x80\xff'\"\\%_\n\r\t {}"))
	all := []worker.Record{
		{Term: 1},
		{Horizon: time.UnixMilli(1)},
		{Seen: time.UnixMilli(1)},
		{Offset: -time.Millisecond},
		{Incarnation: "x"},
		{Since: time.UnixMilli(1)},
		{ClaimDelay: time.Millisecond},
		{Floor: time.UnixMilli(1)},
		{Pool: worker.Pool{Name: "x"}},
		{Owner: "x"},
		{Layouts: []worker.ServedLayout{{}}},
		{Instance: worker.Instance{15: 1}},
		{Instance: full, Term: math.MaxInt64, Horizon: time.UnixMilli(math.MaxInt64), Seen: time.UnixMilli(math.MaxInt64), Offset: longest},
		{Instance: full, Seen: time.UnixMilli(math.MinInt64), Offset: -longest},
		{Term: 1<<53 + 1, Horizon: time.UnixMilli(1<<53 + 1), Seen: time.UnixMilli(1<<53 + 1)},
		{Layouts: []worker.ServedLayout{{Name: "a 'b' \"c\" \\ 订单 😀", Epoch: math.MinInt64, Tick: math.MaxInt64, TimeBits: 63}}},
		{Term: 1, Layouts: layouts, Owner: strings.Repeat("long ", 400)},
	}
	for _, owner := range []string{
		`'; DROP TABLE leaf_worker; --`, `"quoted" 'twice' \ \\ \' %s %d ? $1 :a @b {}`, "<a href='x'>&amp;</a>", " spaces \t",
		"line\nbreak\r\n\x00\x1f\x7f", "Zürich e\u0301 订单 😀 \u2028", "NULL", "null",
	} {
		all = append(all, worker.Record{Term: 1, Owner: owner})
	}
	for i := range all {
		all[i].Worker = int64(i)
	}
	return all
}

func roundTrips(ctx context.Context, b *registryFixture) error {
	r, other := b.open(), b.open()
	all := oddRecords()
	for _, record := range all {
		if err := first(swap(ctx, r, never(record.Worker), record), holds(ctx, r, record), holds(ctx, other, record)); err != nil {
			return err
		}
	}
	if err := listed(ctx, other, all...); err != nil {
		return err
	}
	for i, record := range all { // and each is found when it is replaced
		all[i] = claimed(record.Worker, 2)
		if err := swap(ctx, r, record, all[i]); err != nil {
			return err
		}
	}
	return listed(ctx, other, all...)
}

func workerIDs(ctx context.Context, b *registryFixture) error {
	r := b.open()
	var all []worker.Record
	for _, id := range []int64{0, 1, 9, 10, 99, 1023, 1024, 65536, 524287, 1 << 32, 1<<32 + 7, 1<<33 - 1, 1000<<32 + 1023} {
		record := claimed(id, id+1)
		all = append(all, record)
		if err := first(swap(ctx, r, never(id), record), holds(ctx, r, record)); err != nil {
			return err
		}
	}
	return listed(ctx, b.open(), all...)
}

func fresh(ctx context.Context, b *registryFixture) error {
	clients := b.clients(3)
	old := never(7)
	for term := range int64(60) {
		writer := clients[int(term)%len(clients)]
		record := claimed(7, term+1)
		if err := swap(ctx, writer, old, record); err != nil {
			return err
		}
		for i, r := range clients {
			if err := first(holds(ctx, r, record), listed(ctx, r, record)); err != nil {
				return fmt.Errorf("client %d: %w", i, err)
			}
		}
		old = record
	}
	return nil
}

func permanent(ctx context.Context, b *registryFixture) error {
	r, one := b.open(), claimed(7, 1)
	free := one
	free.Instance = worker.Instance{}
	if err := first(swap(ctx, r, never(7), one), swap(ctx, r, one, free), holds(ctx, r, free)); err != nil {
		return err
	}
	r, err := b.reopen(r)
	if err != nil {
		return err
	}
	return first(
		holds(ctx, r, free),
		listed(ctx, r, free),
		conflicts(ctx, r, "the zero record", never(7), claimed(7, 1), free))
}

func newerRecord(ctx context.Context, b *registryFixture) error {
	return unreadable(ctx, b, `{"v":99,"holder":{"instance":"x"},"until":"2100-01-01"}`, worker.ErrNewer)
}

func garbage(ctx context.Context, b *registryFixture) error {
	for _, text := range []string{"garbage", "{}", `{"v":1,"instance":"","term":-1,"horizon":0}`} {
		if err := unreadable(ctx, b, text, nil); err != nil {
			return fmt.Errorf("with the text %s in it: %w", text, err)
		}
	}
	return nil
}

// unreadable checks the handling of a cell with text.
func unreadable(ctx context.Context, b *registryFixture, text string, want error) error {
	if b.Corrupt == nil {
		return nil
	}
	const bad, good = 4711, 7
	r := b.open()
	old, neighbour := claimed(bad, 1), claimed(good, 1)
	if held, err := r.Load(ctx, bad); err == nil { // the first text
		if err := first(swap(ctx, r, held, old), put(ctx, r, neighbour)); err != nil {
			return err
		}
	} else if neighbour, err = r.Load(ctx, good); err != nil {
		return fmt.Errorf("load of a good cell: %w", err)
	}
	b.Corrupt(b.t, bad, text)
	for range 2 {
		_, loadErr := r.Load(ctx, bad)
		_, listErr := r.List(ctx)
		if err := first(
			blames("load", loadErr, bad, want),
			blames("list", listErr, bad, want),
			fails("swap from the zero record", attempt(ctx, r, never(bad), claimed(bad, 2))),
			fails("swap from the record before", attempt(ctx, r, old, claimed(bad, 2))),
			holds(ctx, r, neighbour)); err != nil {
			return err
		}
	}
	return nil
}

// blames checks that err names the worker and, if want is not nil, wraps it.
func blames(what string, err error, id int64, want error) error {
	if err == nil {
		return fails(what, err)
	}
	if !strings.Contains(err.Error(), strconv.FormatInt(id, 10)) {
		return fmt.Errorf("%s: %w: does not name worker %d", what, err, id)
	}
	if want == nil {
		return nil
	}
	return is(what, err, want)
}

func listCells(ctx context.Context, b *registryFixture) error {
	r := b.open()
	all := make(map[int64]worker.Record)
	for _, id := range []int64{10, 2, 100, 1, 1000, 0, 11} {
		all[id] = claimed(id, 1)
		if err := swap(ctx, r, never(id), all[id]); err != nil {
			return err
		}
	}
	again := claimed(100, 2)
	return first(
		swap(ctx, r, all[100], again),
		holds(ctx, r, never(5)),
		listed(ctx, r, all[0], all[1], all[2], all[10], all[11], again, all[1000]))
}

func listMany(ctx context.Context, b *registryFixture) error {
	const n = 400
	r := b.open()
	all := make([]worker.Record, n)
	for i := range all {
		all[i] = claimed(int64(3*i), 1)
	}
	if err := together(8, func(part int) error {
		for i := part; i < n; i += 8 {
			if err := swap(ctx, r, never(all[i].Worker), all[i]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return first(listed(ctx, r, all...), listed(ctx, b.open(), all...))
}

func registryClock(ctx context.Context, b *registryFixture) error {
	var last time.Time
	for i, r := range b.clients(2) {
		for range 5 {
			now, err := r.Clock(ctx)
			switch {
			case err != nil:
				return fmt.Errorf("clock: %w", err)
			case now.IsZero() && last.IsZero():
				continue
			case now.IsZero() || now.Before(last):
				return fmt.Errorf("the clock of client %d says %v after %v", i, now, last)
			case time.Since(now).Abs() > time.Minute:
				return fmt.Errorf("the clock is off by %v", time.Since(now))
			}
			last = now
		}
	}
	return nil
}

func serverEpochs(ctx context.Context, b *registryFixture) error {
	var first worker.ServerEpoch
	for i, r := range b.clients(2) {
		f, ok := r.(worker.LossyRegistry)
		if !ok {
			return nil
		}
		for j := range 3 {
			epoch, err := f.ServerEpoch(ctx)
			if err != nil {
				return fmt.Errorf("epoch: %w", err)
			}
			if i == 0 && j == 0 {
				first = epoch
			}
			if epoch != first {
				return fmt.Errorf("epoch: client %d says %+v after %+v", i, epoch, first)
			}
			if err := put(ctx, r, claimed(7, int64(10*i+j+1))); err != nil {
				return err
			}
		}
	}
	return nil
}

// assignRules are those for a [worker.Assigner].
func assignRules() []registryRule {
	return []registryRule{
		{"assign", "a registry that assigns worker IDs assigns one that the layouts hold", assigns},
	}
}

func assigns(ctx context.Context, b *registryFixture) error {
	a, ok := b.open().(worker.Assigner)
	if !ok {
		return nil
	}
	const highest = 1023
	for range 3 {
		if id, err := a.Assign(ctx, highest); err != nil || id < 0 || id > highest {
			return fmt.Errorf("assign: got worker %d and error %v, want one from 0 to %d", id, err, highest)
		}
	}
	return nil
}
