package segment

import (
	"cmp"
	"context"
	"iter"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/leaf-id/leaf"
)

// Near the end of the ID space a late caller gets nothing, not a sum that wrapped.
func TestReserveNearTheEnd(t *testing.T) {
	r := leaf.Range{Start: math.MaxInt64 - 10, End: math.MaxInt64}
	for _, late := range []int64{1, 10, maxMaxStock} {
		s := newSpan(Grant{Range: r})
		s.used.Store(9)
		if got := s.reserve(late); got != (leaf.Range{Start: math.MaxInt64 - 1, End: math.MaxInt64}) {
			t.Errorf("the last ID: got %v", got)
		}
		s.used.Store(9) // as if the others came between the look and the add
		s.used.Add(late + 5)
		if got := s.take(late); !got.Empty() {
			t.Errorf("a drained span gave %v", got)
		}
		s.seal()
		if got := s.take(late); !got.Empty() {
			t.Errorf("a sealed span gave %v", got)
		}
	}
}

// counterStore is a store of one counter.
type counterStore struct{ next atomic.Int64 }

func (c *counterStore) Advance(_ context.Context, _ string, n int64) (Grant, error) {
	n = cmp.Or(n, 10)
	end := c.next.Add(n)
	return Grant{Range: leaf.Range{Start: end - n, End: end}, Step: 10}, nil
}

func (c *counterStore) Tags(context.Context) iter.Seq2[Tag, error] {
	return func(func(Tag, error) bool) {}
}

// A caller that slept between its load and its add gets nothing of a span whose rest went into a
// contiguous range.
func TestLateCallerAfterACut(t *testing.T) {
	store := new(counterStore)
	b := NewBuffer(store, "order", nil)
	if _, err := b.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := b.current.Load()
	if _, err := b.TakeContiguous(t.Context(), int(late.remaining())+100); err != nil {
		t.Fatal(err)
	}
	if b.current.Load() == late {
		t.Fatal("nothing was cut: the test shows nothing")
	}
	if r := late.take(1); !r.Empty() {
		t.Errorf("a late caller got %v", r)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What goes back to the store with the rest of a span is the grant that it came from.
func TestOrigin(t *testing.T) {
	g := Grant{Range: leaf.Range{Start: 3, End: 9}, Step: 2, Source: "a", Server: "b", Store: "c", Guarded: true, Version: "d"}
	if got := originOf(g).grant(); !reflect.DeepEqual(got, g) {
		t.Errorf("got %+v, want %+v", got, g)
	}
}

// Every grant has a text of its own for the identity of the store, and the buffers keep one.
func TestKeptStore(t *testing.T) {
	s := &shared{id: storeID{known: "ours"}}
	if got := s.keptStore(strings.Clone("ours")); got != "ours" || unsafe.StringData(got) != unsafe.StringData(s.id.known) {
		t.Errorf("got %q", got)
	}
	if got := s.keptStore("theirs"); got != "theirs" {
		t.Errorf("got %q", got)
	}
}
