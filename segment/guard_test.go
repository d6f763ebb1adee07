package segment_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// notes is a Memory that lives as long as the test.
type notes map[string]map[string]segment.Mark

func (n notes) Recall(tag string) map[string]segment.Mark { return n[tag] }

func (n notes) Remember(tag, source string, mark segment.Mark) error {
	if n[tag] == nil {
		n[tag] = make(map[string]segment.Mark)
	}
	n[tag][source] = mark
	return nil
}

func (n notes) Forget(tag string) error {
	delete(n, tag)
	return nil
}

// Two processes that lift a counter at the same time: the one that comes second is granted its
// lift as a range, and keeps no more of it than it needs.
func TestGuardKeepsNoLift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100
		store := newStore(t, 1, step)
		b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 50_000})
		next(t, b)
		loseWrites(t, store, 1)
		store.Plan(func(c drivertest.Call) drivertest.Fault {
			if c.N > step { // the lift
				if _, err := store.Store.Advance(t.Context(), "order", 1_000_000); err != nil {
					t.Error(err)
				}
			}
			return drivertest.Fault{}
		})
		for range step {
			next(t, b)
		}
		synctest.Wait()
		st := b.Stats()
		if st.Regressions != 1 || st.Stock > 3*step || st.Lost < 50_000 {
			t.Errorf("%d regressions, %d IDs in memory, %d lost", st.Regressions, st.Stock, st.Lost)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// loseWrites sets the counter back, as a restored backup does.
func loseWrites(t testing.TB, store *drivertest.Faulty, maxID int64) {
	t.Helper()
	if _, err := store.Alter(t.Context(), "order", segment.Change{MaxID: &maxID, Force: true}); err != nil {
		t.Fatal(err)
	}
}

func TestGuardLiftsACounterThatWentBack(t *testing.T) {
	for _, policy := range []segment.Policy{segment.Adaptive, segment.Leaf} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 1000)
			b := segment.NewBuffer(store, "order", &segment.Options{Policy: policy, RegressionJump: 50_000, MaxStock: 5000})
			defer b.Close(t.Context())
			var ranges drivertest.Ranges
			take := func(n int) {
				got, err := b.Take(t.Context(), nil, n)
				if err != nil {
					t.Fatal(err)
				}
				ranges.Add(got...)
				synctest.Wait()
			}
			for range 20 {
				take(300)
			}
			high := ranges.Sorted()[19].End
			loseWrites(t, store, 500)
			for range 20 {
				take(300)
			}
			if err := ranges.Check(); err != nil {
				t.Fatal(err)
			}
			if got := b.Stats().Regressions; got != 1 {
				t.Fatalf("%d regressions counted, want 1", got)
			}
			after, err := store.Advance(t.Context(), "order", 1)
			if err != nil {
				t.Fatal(err)
			}
			if after.Range.Start < high+50_000 {
				t.Fatalf("the counter stands at %d, want it at least 50,000 above %d", after.Range.Start, high)
			}
		})
	}
}

// With the memory a restarted node notices a loss. After a clean stop the memory holds the issued
// IDs, so that the node's own give-back is no regression.
func TestGuardRemembers(t *testing.T) {
	store := newStore(t, 1, 1000)
	memory := notes{}
	opts := &segment.Options{Memory: memory, RegressionJump: 100_000}

	b := segment.NewBuffer(store, "order", opts)
	for range 10 {
		next(t, b)
	}
	if got := memory["order"][""].High; got < 1001 {
		t.Fatalf("while serving, %d is remembered; [1, 1001) was granted", got)
	}
	closeBuffer(t, b)
	if got := memory["order"][""].High; got != 11 {
		t.Fatalf("after a clean stop, %d is remembered, want 11", got)
	}

	b = segment.NewBuffer(store, "order", opts)
	if got := next(t, b); got != 11 {
		t.Fatalf("got %d, want 11", got)
	}
	closeBuffer(t, b)
	if got := b.Stats().Regressions; got != 0 {
		t.Fatalf("%d regressions counted after a clean stop", got)
	}

	loseWrites(t, store, 3)
	b = segment.NewBuffer(store, "order", opts)
	defer closeBuffer(t, b)
	if got := next(t, b); got < 100_000 {
		t.Fatalf("got %d from a store that had lost writes", got)
	}
}

// Another process with the same memory gets the next range, and remembers it, before this one
// checks its own: no write was lost.
func TestGuardSharesItsMemory(t *testing.T) {
	memory := notes{}
	store := &neighbour{newStore(t, 1, 10), memory}
	b := segment.NewBuffer(store, "order", &segment.Options{Memory: memory, Policy: segment.Leaf})
	defer b.Close(t.Context())
	if got := next(t, b); got != 1 {
		t.Fatalf("got %d, want 1", got)
	}
}

// neighbour lets another process advance right after each call.
type neighbour struct {
	*drivertest.Faulty
	memory notes
}

func (s *neighbour) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := s.Faulty.Advance(ctx, tag, n)
	if err != nil {
		return grant, err
	}
	theirs, err := s.Faulty.Advance(ctx, tag, n)
	if err != nil {
		return grant, err
	}
	return grant, s.memory.Remember(tag, theirs.Source, segment.Mark{High: theirs.Range.End})
}

// Two nodes stop in good order. The node that wrote the counter last gives its rest back, and
// continues there; the other's rest, below that, is lost. Neither is a lost write.
func TestTwoCleanStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		open := func(memory notes) *segment.Buffer {
			return segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf, Memory: memory})
		}
		memoryA, memoryB := notes{}, notes{}
		a, b := open(memoryA), open(memoryB)
		next(t, b) // [1, 1001)
		next(t, a) // [1001, 2001)
		if _, err := b.Take(t.Context(), nil, 300); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // b has prefetched [2001, 3001)
		closeBuffer(t, b)
		if err := a.Close(t.Context()); err == nil {
			t.Error("a gave back what b had written behind")
		}
		for i, memory := range []notes{memoryA, memoryB} {
			buffer := open(memory)
			if got, want := next(t, buffer), int64(2001+i); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
			closeBuffer(t, buffer)
			if n := buffer.Stats().Regressions; n != 0 {
				t.Errorf("%d regressions", n)
			}
		}
	})
}

// Nodes stop one after the other. The first one's rest goes to the second, whose own IDs end there
// and which gives back both: below the first one's give-back. That is no lost write.
func TestStopsOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		open := func(memory notes) *segment.Buffer {
			return segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf, Memory: memory})
		}
		memory := notes{}
		first, second := open(memory), open(notes{})
		next(t, first)  // of [1, 1001)
		next(t, second) // of [1001, 2001)
		for _, b := range []*segment.Buffer{first, second} {
			if _, err := b.Take(t.Context(), nil, 200); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // it has prefetched [2001, 3001)
			closeBuffer(t, b)
		}
		again := open(memory)
		defer closeBuffer(t, again)
		if got := next(t, again); got != 1202 {
			t.Errorf("got %d, want 1202", got)
		}
		if n := again.Stats().Regressions; n != 0 {
			t.Errorf("%d regressions", n)
		}
	})
}

// A process takes over from one that shares its memory and gives back after this one
// has looked.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		opts := &segment.Options{Policy: segment.Leaf, Memory: notes{}}
		before := segment.NewBuffer(store, "order", opts)
		next(t, before)
		store.Set(drivertest.Fault{Latency: 100 * time.Millisecond})
		after := segment.NewBuffer(store, "order", opts)
		defer closeBuffer(t, after)
		go func() { _, _ = after.Next(t.Context()) }()
		synctest.Wait()
		store.Set(drivertest.Fault{})
		closeBuffer(t, before)
		if got := next(t, after); got > 10 {
			t.Errorf("got %d", got)
		}
	})
}

// Where the memory cannot be told how far was issued, nothing is given back.
func TestNoGiveBackWithoutMemory(t *testing.T) {
	store := newStore(t, 1, 10)
	memory := &fullNotes{}
	b := segment.NewBuffer(store, "order", &segment.Options{Memory: memory})
	next(t, b)
	wantError(t, b.Close(t.Context()), errFull)
	if n := store.Calls(drivertest.OpReturn); n != 0 {
		t.Errorf("%d give-backs", n)
	}
}

var errFull = errors.New("disk full")

type fullNotes struct{ notes }

func (fullNotes) Remember(string, string, segment.Mark) error { return errFull }

func TestGuardDefaultJump(t *testing.T) {
	for _, c := range []struct{ step, want int64 }{{1000, 10_000_000}, {300_000, 30_000_000}} {
		store := newStore(t, 1, c.step)
		memory := notes{"order": {"": {High: 5000}}}
		b := segment.NewBuffer(store, "order", &segment.Options{Memory: memory})
		if got := next(t, b); got < c.want {
			t.Errorf("step %d: got %d, want at least %d", c.step, got, c.want)
		}
		closeBuffer(t, b)
	}
}

// One loss after the other: each lift goes as far as the first, not a hundred times
// as far as the one before.
func TestGuardLiftsEvenly(t *testing.T) {
	store := newStore(t, 1, 10)
	b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
	defer b.Close(t.Context())
	for range 5 {
		drainTo(t, b, next(t, b)+1000)
		loseWrites(t, store, 1)
	}
	if got := next(t, b); got > 110_000_000 {
		t.Errorf("got %d after five losses", got)
	}
}

// Several nodes know the same mark of a counter. Each is the first to notice a loss, because the
// others' lifts are lost too: they lift to different places.
func TestGuardLiftsApart(t *testing.T) {
	var ranges drivertest.Ranges
	for range 5 {
		memory := notes{"order": {"": {High: 5000}}}
		b := segment.NewBuffer(newStore(t, 1, 10), "order", &segment.Options{Memory: memory})
		got, err := b.Take(t.Context(), nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		ranges.Add(got...)
		closeBuffer(t, b)
	}
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

func TestGuardHasNoRoom(t *testing.T) {
	memory := notes{"order": {"": {High: math.MaxInt64 - 100}}}
	b := segment.NewBuffer(newStore(t, 1, 10), "order", &segment.Options{Memory: memory})
	defer closeBuffer(t, b)
	_, err := b.Next(t.Context())
	wantError(t, err, leaf.ErrOverflow)
}

// A lift that fails half-way is taken up again: nothing below it is ever issued.
func TestGuardLiftFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		memory := notes{"order": {"": {High: 5000}}}
		store.Next(drivertest.OpAdvance, drivertest.Fault{}, drivertest.Fault{Before: errDown},
			drivertest.Fault{}, drivertest.Fault{After: errDown})
		b := segment.NewBuffer(store, "order", &segment.Options{Memory: memory, RegressionJump: 1000})
		defer closeBuffer(t, b)
		if got := next(t, b); got < 6000 {
			t.Fatalf("issued %d, below the lift", got)
		}
	})
}

// servers grants from a memory store in the name of a server.
type servers struct {
	*drivertest.Faulty
	name string
}

func (s *servers) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := s.Faulty.Advance(ctx, tag, n)
	grant.Server = s.name
	return grant, err
}

// Another server may not know the former one's last grants to other nodes.
func TestGuardDistrustsAnotherServer(t *testing.T) {
	store := &servers{newStore(t, 1, 1000), "1"}
	b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 100_000, MaxStock: 1500})
	defer closeBuffer(t, b)
	next(t, b)
	store.name = "2"
	drainTo(t, b, 1000)
	if got := next(t, b); got < 101_000 {
		t.Fatalf("got %d from another server", got)
	}
	if got := b.Stats().Regressions; got != 1 {
		t.Fatalf("%d regressions counted, want 1", got)
	}
}

// twoLosses grants from a store that loses writes before its second call, and, once its counter has
// been lifted, before its fourth.
type twoLosses struct {
	servers
	calls int
	again func()
}

func (s *twoLosses) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	switch s.calls++; s.calls {
	case 2:
		s.name = "2"
	case 4:
		s.again()
	}
	return s.servers.Advance(ctx, tag, n)
}

// A store that loses writes while its counter is lifted may lose what other processes were granted
// above that lift, too.
func TestGuardLiftsAgain(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *servers){
		"another server":        func(_ *testing.T, s *servers) { s.name = "3" },
		"the counter went back": func(t *testing.T, s *servers) { loseWrites(t, s.Faulty, 500) },
	} {
		t.Run(name, func(t *testing.T) {
			store := &twoLosses{servers: servers{newStore(t, 1, 1000), "1"}}
			store.again = func() { lose(t, &store.servers) }
			b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 100_000, MaxStock: 1500})
			defer closeBuffer(t, b)
			drainTo(t, b, 1000)
			if got := next(t, b); got < 200_000 {
				t.Errorf("got %d, which others may have been granted after the first lift", got)
			}
			if got := b.Stats().Regressions; got != 2 {
				t.Errorf("%d regressions counted, want 2", got)
			}
		})
	}
}

func drainTo(t testing.TB, b *segment.Buffer, last int64) {
	t.Helper()
	for next(t, b) < last {
	}
}
