package segment

import (
	"cmp"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/leaf-id/leaf"
)

// A scripted store grants by the test's word for each call.
type scripted struct {
	lyingStore
	calls int
	says  func(call int, n int64) Grant
}

func (s *scripted) Advance(_ context.Context, _ string, n int64) (Grant, error) {
	s.calls++
	return s.says(s.calls, n), nil
}

// Where another process lifts the counter first, a buffer keeps the end of its own lift: as many IDs
// as it wanted, or as a step has.
func TestEndOfASecondLift(t *testing.T) {
	const seen, lifted, step = 1000, 5000, 7
	for _, c := range []struct{ n, most, want int64 }{{5, math.MaxInt64, 5}, {0, math.MaxInt64, step}, {5, 3, 3}} {
		var lost, end int64
		store := &scripted{says: func(call int, n int64) Grant {
			start, size := int64(500), cmp.Or(n, step)
			if call > 1 {
				start, size = lifted, min(size, c.most)
				end = start + size
			}
			lost += size
			return Grant{Range: leaf.Range{Start: start, End: start + size}, Step: step}
		}}
		memory := marked{mark: Mark{High: seen}}
		b := NewBuffer(store, "order", &Options{RegressionJump: 1000, Memory: memory})
		g, err := b.fetch(t.Context(), "", c.n)
		lost -= c.want
		if want := (leaf.Range{Start: end - c.want, End: end}); err != nil || g.Range != want || store.calls != 2 || b.Stats().Lost != lost {
			t.Errorf("%+v: %v after %d calls, %v, with %d lost, want %v and %d", c, g.Range, store.calls, err, b.Stats().Lost, want, lost)
		}
	}
}

// Callers leave no need behind after their wait.
func TestNoNeedIsLeft(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Buffer) error{
		"Next":           func(ctx context.Context, b *Buffer) error { _, err := b.Next(ctx); return err },
		"Take":           func(ctx context.Context, b *Buffer) error { _, err := b.Take(ctx, nil, 5); return err },
		"TakeContiguous": func(ctx context.Context, b *Buffer) error { _, err := b.TakeContiguous(ctx, 5); return err },
		"Advance":        func(ctx context.Context, b *Buffer) error { _, err := b.advance(ctx, 5, ""); return err },
	} {
		b := NewBuffer(&scripted{says: func(call int, n int64) Grant {
			return Grant{Range: leaf.Range{Start: int64(call) * 100, End: int64(call)*100 + cmp.Or(n, 10)}, Step: 10}
		}}, "order", nil)
		err := call(t.Context(), b)
		b.mu.Lock()
		if err != nil || b.short != 0 || len(b.runs) != 0 {
			t.Errorf("%s: %v, with a need of %d and %d runs", name, err, b.short, len(b.runs))
		}
		b.mu.Unlock()
	}
}

// A marked memory knows one counter.
type marked struct {
	noMemory
	mark Mark
}

func (m marked) Recall(tag string) map[string]Mark {
	if tag == identityTag {
		return nil
	}
	return map[string]Mark{"": m.mark}
}

// A returning store takes IDs back.
type returning struct{ scripted }

func (*returning) Return(context.Context, string, Grant, int64) error { return nil }

// A clean stop remembers the server that granted last.
func TestStopRemembersTheServer(t *testing.T) {
	memory := &identityNotes{n: new(int)}
	b := NewBuffer(&returning{scripted{says: func(int, int64) Grant {
		return Grant{Range: leaf.Range{Start: 1, End: 11}, Step: 10, Server: "a"}
	}}}, "order", &Options{Memory: memory})
	if _, err := b.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil || memory.mark != (Mark{High: 2, Server: "a"}) {
		t.Errorf("%v, remembered %+v", err, memory.mark)
	}
}

// A counter that goes back again while it is lifted is lifted above the first lift.
func TestLossDuringALift(t *testing.T) {
	const jump = 1000
	b := NewBuffer(&lyingStore{}, "order", &Options{RegressionJump: jump, Memory: marked{mark: Mark{High: 2000}}})
	b.guard.recall()
	floor := int64(2000)
	for _, end := range []int64{505, 405, 305} {
		lift, err := b.guard.admit(Grant{Range: leaf.Range{Start: end - 5, End: end}, Step: 1})
		if err != nil || end+lift < floor+jump {
			t.Errorf("at %d: lifts by %d to %d, %v, want at least %d above %d", end, lift, end+lift, err, jump, floor)
		}
		floor = end + lift
	}
}

// The IDs of a foreign store are lost.
func TestForeignGrantIsLost(t *testing.T) {
	b := NewBuffer(&lyingStore{grant: Grant{Range: leaf.Range{Start: 1, End: 11}, Step: 10, Store: "b"}}, "order", &Options{StoreID: "a"})
	if _, err := b.fetch(t.Context(), "", 10); !errors.Is(err, ErrForeignStore) || b.Stats().Lost != 10 {
		t.Errorf("%v, %d lost", err, b.Stats().Lost)
	}
}
