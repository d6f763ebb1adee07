package conns

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Unread output comes out as it went in, however it is cut, and its memory is that of its chunks.
func TestUnread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var u unread
	var want []byte // the content of u
	for range 500 {
		if rng.IntN(2) == 0 {
			p := make([]byte, rng.IntN(10*smallChunk)*rng.IntN(20))
			for i := range p {
				p[i] = byte(len(want) + i)
			}
			u.add(p)
			want = append(want, p...)
			clear(p) // it has a copy
		} else if u.size > 0 {
			first := u.first()
			n := 1 + rng.IntN(len(first))
			if !bytes.HasPrefix(want, first) || len(first) == 0 {
				t.Fatal("other output comes out")
			}
			u.drop(n)
			want = want[n:]
		}
		if rng.IntN(50) == 0 { // the client reads all
			for u.size > 0 {
				u.drop(len(u.first()))
			}
			want = nil
		}
		memory := 0
		for _, c := range u.chunks {
			if memory += cap(c); cap(c) > largeChunk || cap(c) < smallChunk {
				t.Fatalf("a chunk of %d bytes", cap(c))
			}
		}
		if u.size != len(want) || u.memory != memory || (u.size == 0) != (u.chunks == nil) {
			t.Fatalf("%d bytes in %d of memory, want %d in %d", u.size, u.memory, len(want), memory)
		}
	}
}

// Small output takes little memory, and more output larger chunks.
func TestUnreadGrows(t *testing.T) {
	var u unread
	var got []int
	for range 150 << 10 {
		if n := len(u.chunks); n == len(got)+1 {
			got = append(got, cap(u.chunks[n-1]))
		}
		u.add([]byte{0})
	}
	if want := []int{1 << 10, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 64 << 10}; !slices.Equal(got, want) {
		t.Errorf("chunks of %d bytes", got)
	}
}

// Timers end in the order in which they were set last, and each one once.
func TestTimers(t *testing.T) {
	var list, other timers
	list.init(time.Second, nil)
	other.init(time.Minute, nil)
	start := time.Now()
	var a, b, c timer
	for i, x := range []*timer{&a, &b, &c, &a} { // a once more
		list.set(x, start.Add(time.Duration(i)))
	}
	for i, want := range []*timer{&b, &c, &a} {
		got := list.first()
		if got != want || !got.at.Equal(start.Add(time.Second+time.Duration(i+1))) {
			t.Fatalf("timer %d is another, or ends at another time", i)
		}
		got.clear()
		got.clear() // it is in no list
	}
	if list.first() != nil {
		t.Error("a timer is left")
	}
	list.set(&a, start)
	other.set(&a, start)
	if list.first() != nil || other.first() != &a {
		t.Error("a timer is in another list")
	}
}

// A poll waits until the first timer of any list ends, and no longer.
func TestTimeout(t *testing.T) {
	var l loop
	for _, list := range l.timers() {
		list.init(time.Hour, nil)
	}
	if got := l.timeout(); got != -1 {
		t.Errorf("without a timer: %d", got)
	}
	l.linger.set(new(timer), time.Now())
	l.request.set(new(timer), time.Now().Add(-30*time.Minute))
	if got := l.timeout(); got > 30*60*1000+1 || got < 29*60*1000 {
		t.Errorf("before the first: %d ms", got)
	}
	l.write.set(new(timer), time.Now().Add(-2*time.Hour))
	if got := l.timeout(); got != 0 {
		t.Errorf("after the first: %d ms", got)
	}
}
