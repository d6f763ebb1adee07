package snowflake

import (
	"math"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
)

// The reserve holds what Size says, is left alone while more than Refill percent of it
// are left, and is filled up each Interval, and for waiting callers, in any case.
func TestReserve(t *testing.T) {
	const ahead, size = 60_000, 8192 << 3
	for name, tt := range map[string]struct {
		reserve Reserve
		drawn   uint64
		later   int64 // ms
		backlog uint64
		want    uint64 // ready after that
	}{
		"none":              {Reserve{Refill: 50}, 10, 0, 0, 61*8192 - 10},
		"just drawn from":   {Reserve{Size: size, Refill: 50}, 1, 0, 0, size - 1},
		"51 % left":         {Reserve{Size: size, Refill: 50}, size/2 - 1, 0, 0, size/2 + 1},
		"50 % left":         {Reserve{Size: size, Refill: 50}, size / 2, 0, 0, size},
		"90 % left of 90 %": {Reserve{Size: size, Refill: 90}, size/10 + 1, 0, 0, size},
		"used up":           {Reserve{Size: size, Refill: 1}, size, 0, 0, size},
		"before its time":   {Reserve{Size: size, Refill: 50, Interval: time.Second}, 1, 999, 0, size - 1},
		"on schedule":       {Reserve{Size: size, Refill: 50, Interval: time.Second}, 1, 1000, 0, size},
		"callers wait":      {Reserve{Size: size, Refill: 50}, 1, 0, size + 7, size + 7},
		"no end to it":      {Reserve{Size: math.MaxInt64, Refill: 99}, 10, 0, 0, 61*8192 - 10},
	} {
		l := newLeaseCursor(Layout{time.UnixMilli(0), time.Second, 31, 19, 13}, newFakeLease(1, 0, math.MaxInt64), start, 0, 0)
		l.stock = newReserve(tt.reserve)
		l.raise(start, ahead, 0)
		l.reserve(tt.drawn, l.limit)
		l.raise(start+tt.later, ahead, tt.backlog)
		if got := l.limit - l.cursor.Load(); got != tt.want {
			t.Errorf("%s: %d are ready, want %d", name, got, tt.want)
		}
	}
}

func TestBadReserve(t *testing.T) {
	for _, r := range []Reserve{{Size: -1}, {Size: 1, Refill: 100}, {Size: 1, Refill: -1}, {Size: 1, Interval: -1}} {
		_, err := New(uidLayout, &Options{Reserve: r})
		wantError(t, err, leaf.ErrInvalid, "reserve")
	}
}
