package segment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A change sets the named fields, leaves the rest, and lowers the counter only with Force.
func TestChange(t *testing.T) {
	tag := segment.Tag{Name: "order", MaxID: 100, Step: 10}
	for _, tt := range []struct {
		change    segment.Change
		max, step int64
		err       error
		zero      bool
	}{
		{segment.Change{}, 100, 10, nil, true},
		{segment.Change{MaxID: new(int64(100))}, 100, 10, nil, false},
		{segment.Change{MaxID: new(int64(101))}, 101, 10, nil, false},
		{segment.Change{MaxID: new(int64(99))}, 0, 0, leaf.ErrRegression, false},
		{segment.Change{MaxID: new(int64(99)), Force: true}, 99, 10, nil, false},
		{segment.Change{Step: new(int64(20))}, 100, 20, nil, false},
		{segment.Change{Step: new(int64(20)), MaxID: new(int64(0)), Force: true}, 0, 20, nil, false},
		{segment.Change{Force: true}, 100, 10, nil, true},
	} {
		got, err := tt.change.Apply(tag)
		if got.MaxID != tt.max || got.Step != tt.step || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%+v: %+v, %v", tt.change, got, err)
		}
		if tt.change.IsZero() != tt.zero {
			t.Errorf("%+v: zero: %v", tt.change, tt.change.IsZero())
		}
	}
}

// Tags have a name, a step and a counter within their limits, and are named once.
func TestCheckTags(t *testing.T) {
	valid := segment.Tag{Name: "order", MaxID: 0, Step: 1}
	named := func(name string) segment.Tag { return segment.Tag{Name: name, Step: segment.MaxStep} }
	long := strings.Repeat("ä", segment.MaxTagLength)
	periodic := func(name string) segment.Tag {
		return segment.Tag{Name: name, Step: 1, Options: segment.TagOptions{segment.OptionPeriod: "day"}}
	}
	for _, tt := range []struct {
		name  string
		tags  []segment.Tag
		valid bool
	}{
		{"two", []segment.Tag{valid, named("other")}, true},
		{"one twice", []segment.Tag{valid, named("other"), valid}, false},
		{"no name", []segment.Tag{valid, named("")}, false},
		{"a long name", []segment.Tag{named(long)}, true},
		{"a longer name", []segment.Tag{named(long + "a")}, false},
		{"a control character", []segment.Tag{named("a\tb")}, false},
		{"a deleting character", []segment.Tag{named("a\x7f")}, false},
		{"bytes", []segment.Tag{named("a\xff")}, false},
		{"blanks and tildes", []segment.Tag{named(" ~")}, true},
		{"no step", []segment.Tag{{Name: "order"}}, false},
		{"a large step", []segment.Tag{{Name: "order", Step: segment.MaxStep + 1}}, false},
		{"a negative counter", []segment.Tag{{Name: "order", Step: 1, MaxID: -1}}, false},
		{"a long name with periods", []segment.Tag{periodic(strings.Repeat("ä", 100))}, true},
		{"a longer name with periods", []segment.Tag{periodic(strings.Repeat("ä", 101))}, false},
	} {
		if err := segment.CheckTags(tt.tags); (err == nil) != tt.valid || !tt.valid && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Dropped IDs are lost, and the buffer replaces them before anybody asks.
func TestDropBelowRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := segment.NewBuffer(newStore(t, 1, 10), "order", nil)
		defer closeBuffer(t, b)
		if id, err := b.Next(t.Context()); id != 1 || err != nil {
			t.Fatalf("got %d, %v", id, err)
		}
		synctest.Wait()
		dropped := b.DropBelow(15)
		synctest.Wait()
		if st := b.Stats(); dropped != 9 || st.Stock != 6 || st.Segments[0].Next != 15 || st.Lost != 13 {
			t.Errorf("dropped %d, now %+v", dropped, st)
		}
	})
}

// A grant that comes after the end of the buffer is lost, and counted.
func TestLateGrantIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := segment.NewBuffer(&slowGrants{newStore(t, 1, 10), time.Second}, "order", &segment.Options{Wait: time.Minute})
		failed := make(chan error, 1)
		go func() { _, err := b.Next(t.Context()); failed <- err }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // no wait for the call
		wantError(t, b.Close(ctx), nil)
		wantError(t, <-failed, leaf.ErrClosed)
		time.Sleep(2 * time.Second)
		if st := b.Stats(); st.Lost != 10 || st.Stock != 0 || st.Refilling {
			t.Errorf("got %+v", st)
		}
	})
}

// A buffer without a set refuses an unknown tag for good.
func TestUnknownTagOfABuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := segment.NewBuffer(newStore(t, 1, 10), "nope", nil)
		for range 3 {
			_, err := b.Next(t.Context())
			wantError(t, err, leaf.ErrUnknownTag)
			time.Sleep(10 * time.Second)
		}
	})
}
