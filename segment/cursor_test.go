package segment_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

func nextOf(t testing.TB, c *segment.Cursor) int64 {
	t.Helper()
	id, err := c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A single cursor returns the buffer's IDs, with any sizes of blocks and grants.
func TestCursorCountsUp(t *testing.T) {
	for _, block := range []int{0, 1, 7, 20, 1000, 1 << 30} {
		b := segment.NewBuffer(newStore(t, 1, 20), "order", &segment.Options{MaxStock: 5000})
		c := b.Cursor(block)
		for want := int64(1); want <= 2000; want++ {
			if got := nextOf(t, c); got != want {
				t.Fatalf("block %d: got %d, want %d", block, got, want)
			}
		}
		closeBuffer(t, b)
	}
}

// Cursors, calls of the buffer and its end run at the same time: every ID comes once, those of each
// cursor in order, and no returned ID comes at all.
func TestCursorsUnderLoad(t *testing.T) {
	for range 20 {
		store := newStore(t, 0, 50)
		b := segment.NewBuffer(store, "order", nil)
		var ranges drivertest.Ranges
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				c := b.Cursor(1 + g*13)
				for last := int64(-1); ; {
					id, err := c.Next(t.Context())
					if err != nil {
						return
					}
					if id <= last {
						t.Errorf("%d after %d", id, last)
					}
					last = id
					ranges.Add(leaf.Range{Start: id, End: id + 1})
				}
			})
		}
		for range 50 {
			got, err := b.Take(t.Context(), nil, 9)
			if err != nil {
				t.Fatal(err)
			}
			ranges.Add(got...)
		}
		closeBuffer(t, b)
		wg.Wait()
		ranges.Add(advance(t, store, 100_000)) // what went back is granted again
		if err := ranges.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// A cursor does not issue the rest of its block after the end of the buffer: an operator may lower
// the counter below it then.
func TestCursorEndsWithItsBuffer(t *testing.T) {
	store := memory.New().Store()
	create(t, store, "order", 1, 1000)
	set := segment.NewSet(store, nil)
	c := set.Cursor("order", 100)
	for want := int64(1); want <= 10; want++ {
		if got := nextOf(t, c); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	to := int64(500_000)
	err := set.Server().Forget("order", func() error {
		_, err := c.Next(t.Context())
		wantError(t, err, leaf.ErrExhausted)
		_, err = store.Alter(t.Context(), "order", segment.Change{MaxID: &to})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := nextOf(t, c); got != to {
		t.Errorf("after the change: got %d, want %d", got, to)
	}
	if err := set.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = c.Next(t.Context())
	wantError(t, err, leaf.ErrClosed)

	b := segment.NewBuffer(store, "order", nil)
	own := b.Cursor(0)
	nextOf(t, own)
	closeBuffer(t, b)
	_, err = own.Next(t.Context())
	wantError(t, err, leaf.ErrClosed)
}

func TestCursorOfAnUnknownTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New().Store()
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		bad, c := set.Cursor("", 0), set.Cursor("order", 0)
		_, err := bad.Next(t.Context())
		wantError(t, err, leaf.ErrInvalid)
		_, err = c.Next(t.Context())
		wantError(t, err, leaf.ErrUnknownTag)
		create(t, store, "order", 7, 10)
		time.Sleep(2 * time.Second) // for as long an unknown tag is refused
		if got := nextOf(t, c); got != 7 {
			t.Errorf("got %d, want 7", got)
		}
	})
}

// A dropped cursor costs the rest of its block, and no more.
func TestDroppedCursor(t *testing.T) {
	store := newStore(t, 1, 1000)
	b := segment.NewBuffer(store, "order", nil)
	next(t, b)
	nextOf(t, b.Cursor(30))
	if got := next(t, b); got != 32 {
		t.Errorf("got %d, want 32", got)
	}
	closeBuffer(t, b)
	if r := advance(t, store, 1); r.Start != 33 {
		t.Errorf("the next process begins with %d, want 33", r.Start)
	}
}

// After DropBelow has returned, no cursor issues an ID below the limit, and those above it stay.
func TestCursorDropsItsBlock(t *testing.T) {
	b := segment.NewBuffer(newStore(t, 1, 10_000), "order", nil)
	low, high := b.Cursor(64), b.Cursor(64)
	for want := int64(1); want <= 3; want++ {
		if got := nextOf(t, low); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	if got := nextOf(t, high); got != 66 {
		t.Fatalf("got %d, want 66", got)
	}
	b.DropBelow(67)
	if got := nextOf(t, low); got != 130 {
		t.Errorf("a cursor with a block below the limit gave %d, want 130", got)
	}
	if got := nextOf(t, high); got != 67 {
		t.Errorf("a cursor with a block above the limit gave %d, want 67", got)
	}
	b.DropBelow(5000)
	for _, c := range []*segment.Cursor{low, high, b.Cursor(1)} {
		if got := nextOf(t, c); got < 5000 {
			t.Errorf("got %d, want 5000 or more", got)
		}
	}
	closeBuffer(t, b)
	if id, err := low.Next(t.Context()); err == nil {
		t.Errorf("after the end: %d", id)
	}
}

// The cursor of a set takes whole blocks.
func TestBlockOfASet(t *testing.T) {
	set := segment.NewSet(newStore(t, 1, 100), nil)
	defer set.Close(t.Context())
	if _, err := set.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	nextOf(t, set.Cursor("order", 5))
	if st, _ := set.Server().Of("order"); st.Issued != 6 {
		t.Errorf("%d issued", st.Issued)
	}
}
