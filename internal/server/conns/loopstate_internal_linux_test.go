package conns

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Input has room for another read behind it, and otherwise moves to a larger place.
func TestGrow(t *testing.T) {
	for _, tt := range []struct{ size, room, want int }{
		{10, smallRest, 10 + smallRest},
		{10, smallRest - 1, 20 + smallRest},
		{3000, 0, 6000 + smallRest},
	} {
		p := append(make([]byte, 0, tt.size+tt.room), bytes.Repeat([]byte("ab"), tt.size/2)...)
		if got := grow(p); cap(got) != tt.want || !bytes.Equal(got, p) {
			t.Errorf("%+v: %d bytes in %d", tt, len(got), cap(got))
		}
	}
}

// A connection copies the input that it keeps out of the loop's buffer, and again when little of it is
// left. The budget has its memory.
func TestRest(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, nil)
	buffer := []byte("abcdefgh")
	for _, tt := range []struct {
		rest func() []byte
		want string
		size int // of memory
	}{
		{func() []byte { return buffer }, "abcdefgh", 8},
		{func() []byte { return l.c.in[4:] }, "efgh", 8},
		{func() []byte { return l.c.in[1:] }, "fgh", 3},
		{func() []byte { return nil }, "", 0},
	} {
		l.c.rest(tt.rest())
		clear(buffer)
		if string(l.c.in) != tt.want || l.c.inSize != tt.size || l.s.opts.Budget.Used() != int64(tt.size) {
			t.Errorf("%q is kept in %d bytes, %d charged; want %q in %d", l.c.in, l.c.inSize, l.s.opts.Budget.Used(), tt.want, tt.size)
		}
	}
	if l.c.in != nil {
		t.Error("memory is kept for nothing")
	}
}

// A large request comes in by several reads, each into the room behind the input so far.
func TestLargeRequest(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, nil)
	l.c.in = append(make([]byte, 0, smallRest+5), bytes.Repeat([]byte("a"), smallRest+1)...)
	l.send("0123456789")
	in, n, err := l.c.receive(4)
	if n != 4 || err != nil || len(in) != smallRest+5 || string(in[smallRest:]) != "a0123" || &in[0] != &l.c.in[0] {
		t.Errorf("received %d bytes, %v: %d", n, err, len(in))
	}
	l.c.in = l.c.in[:2]
	in, n, err = l.c.receive(4)
	if n != 4 || err != nil || string(in) != "aa4567" || &in[0] != &l.in[0] || len(l.c.in) != 0 {
		t.Errorf("received %d bytes, %v: %q", n, err, in)
	}
}

// An event counts for the connection that it is about, and not for the next one with its descriptor.
func TestFind(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, nil)
	l.c.register()
	event := unix.EpollEvent{Fd: int32(l.c.fd), Pad: l.c.serial}
	if l.find(&event) != l.c {
		t.Error("not found")
	}
	for _, e := range []unix.EpollEvent{{Fd: event.Fd, Pad: event.Pad + 1}, {Fd: event.Fd - 1, Pad: event.Pad}, {Fd: int32(len(l.conns)), Pad: event.Pad}} {
		if l.find(&e) != nil {
			t.Errorf("%+v is found", e)
		}
	}
	if l.c.close(); l.find(&event) != nil {
		t.Error("it has ended, and is found")
	}
}

// Replies are sent together with those of others only where nothing waits for them.
func TestPostpone(t *testing.T) {
	for name, set := range map[string]func(c *loopConn){
		"":         func(*loopConn) {},
		"ending":   func(c *loopConn) { c.ending = true },
		"eof":      func(c *loopConn) { c.eof = true },
		"stopping": func(c *loopConn) { c.stopping = true },
		"late":     func(c *loopConn) { c.late = true },
		"leaves":   func(c *loopConn) { c.heir = func(net.Conn) {} },
		"later":    func(c *loopConn) { c.later = func(context.Context, []byte) []byte { return nil } },
		"unread":   func(c *loopConn) { c.unread.add([]byte("a")) },
	} {
		l := newSteppedLoop(t, &scripted{}, nil)
		set(l.c)
		l.out = append(l.out, "ab"...)
		for _, from := range []int{2, 1} { // nothing, and a reply
			if got := l.c.postpone(from); got != (name == "") {
				t.Errorf("%s: postponed from %d: %v", name, from, got)
			}
		}
		if n := len(l.postponed); name != "" && n > 0 || name == "" && (n != 1 || l.postponed[0] != replies{l.c, 1, 2}) {
			t.Errorf("%s: %d replies are postponed", name, n)
		}
		l.postponed = nil
	}
}

// A client has its time for each request from its first byte on, and its time of being idle from the
// last reply on.
func TestReadLimits(t *testing.T) {
	session := &scripted{}
	l := newSteppedLoop(t, session, &Options{IdleTimeout: time.Hour, RequestTimeout: time.Minute})
	l.c.register()
	start := time.Unix(1_000_000, 0)
	for i, tt := range []struct {
		in             string
		busy, progress bool
		list           *timers
		since          int
	}{
		{"", false, false, &l.idle, 0},
		{"a", false, false, &l.request, 1},
		{"ab", false, false, &l.request, 1}, // it goes on
		{"b", false, true, &l.request, 3},   // the next one begins
		{"", true, false, &l.request, 3},
		{"", true, true, &l.request, 3}, // amid it
		{"", false, true, &l.idle, 6},
		{"", true, false, &l.request, 7},
	} {
		l.c.in, session.busy, l.now = []byte(tt.in), tt.busy, start.Add(time.Duration(i)*time.Second)
		l.c.limitRead(tt.progress)
		if r := &l.c.reading; r.list != tt.list || !r.at.Equal(start.Add(time.Duration(tt.since)*time.Second+tt.list.length)) {
			t.Errorf("step %d: limited until %v", i, r.at.Sub(start))
		}
	}
	l.idle.length, l.c.in, session.busy = 0, nil, false
	if l.c.limitRead(true); l.c.reading.list != nil {
		t.Error("the client may not be idle for ever")
	}
}

// A connection ends when its time has come, and not before.
func TestExpire(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, &Options{IdleTimeout: time.Hour})
	l.c.register()
	end := l.c.reading.at
	for _, early := range []time.Duration{time.Nanosecond, 0} {
		l.now = end.Add(-early)
		if l.expire(); l.c.late != (early == 0) || l.c.lingering != l.c.late {
			t.Errorf("%v before its time: ends %v, closed for writing %v", early, l.c.late, l.c.lingering)
		}
	}
}

// Loops get connections in turn.
func TestLoopsInTurn(t *testing.T) {
	s := New(t.Context(), nil, &Options{Loops: 3})
	if s.pickLoop() != nil {
		t.Error("there is none yet")
	}
	s.loops = []*loop{{}, {}, {}}
	for i := range 6 {
		if s.pickLoop() != s.loops[(i+1)%3] {
			t.Errorf("connection %d gets another loop", i)
		}
	}
}

// Replies behind unread ones wait with them, and give the client no more time.
func TestSendBehindUnread(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, &Options{Budget: NewBudget(1 << 40)})
	l.c.register()
	l.now = time.Unix(1_000_000, 0)
	if !l.c.send(make([]byte, 4<<20)) || l.c.unread.size == 0 || l.c.writing.list != &l.write {
		t.Fatalf("%d bytes are unread", l.c.unread.size)
	}
	size, end := l.c.unread.size, l.c.writing.at
	l.now = l.now.Add(time.Second)
	if !l.c.send([]byte("abc")) || l.c.unread.size != size+3 || !l.c.writing.at.Equal(end) || l.s.opts.Budget.Used() != int64(l.c.unread.memory) {
		t.Errorf("%d bytes are unread, %d charged, until %v", l.c.unread.size, l.s.opts.Budget.Used(), l.c.writing.at)
	}
	var got string
	for l.c.listen(); l.c.unread.size > 0; l.round() {
		if text := l.received(); text != "" {
			got = text
		}
	}
	if got += l.received(); !bytes.HasSuffix([]byte(got), []byte("\x00abc")) {
		t.Errorf("the replies end with %q", got[max(len(got)-8, 0):])
	}
}

// A turn without input ends nothing.
func TestReadNothing(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, nil)
	l.c.register()
	if l.c.read(); l.c.closed || l.c.eof || l.c.finishing {
		t.Error("it has ended")
	}
}

// A client gets the part of a postponed reply that the system does not take at first.
func TestLargePostponedReply(t *testing.T) {
	l := newSteppedLoop(t, &scripted{size: 4 << 20}, nil)
	l.c.register()
	l.c.serve([]byte("a"), true)
	if len(l.postponed) != 1 || l.c.events != unix.EPOLLIN {
		t.Errorf("%d replies are postponed, it waits for %x", len(l.postponed), l.c.events)
	}
	if l.flush(); l.c.unread.size == 0 || l.c.events != unix.EPOLLIN|unix.EPOLLOUT {
		t.Errorf("%d bytes are unread, it waits for %x", l.c.unread.size, l.c.events)
	}
}

// A loop hears nothing of a connection that was handed over.
func TestHandedOverIsSilent(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, nil)
	l.c.register()
	given := make(chan net.Conn, 1)
	l.c.heir = func(conn net.Conn) { given <- conn }
	l.c.leave()
	conn := <-given
	defer conn.Close()
	l.send("x")
	if events := readable(l); len(events) > 0 {
		t.Errorf("%d events", len(events))
	}
	if n, err := conn.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("the heir read %d bytes, %v", n, err)
	}
}

// A connection that cannot be handed over ends.
func TestHandOverFails(t *testing.T) {
	var log strings.Builder
	l := newSteppedLoop(t, &scripted{}, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	file, err := os.Open(os.DevNull) // no socket
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_ = unix.Close(l.c.fd)
	if l.c.fd, err = unix.Dup(int(file.Fd())); err != nil {
		t.Fatal(err)
	}
	l.c.heir = func(net.Conn) { t.Error("it was handed over") }
	l.c.leave()
	if open, _ := l.s.Stats(); open != 0 || !l.c.closed || !strings.Contains(log.String(), "could not be handed over") {
		t.Errorf("%d connections, the log: %s", open, log.String())
	}
}

// A connection that ends is closed for writing once its client has read all replies.
func TestFinishAfterUnread(t *testing.T) {
	session := &scripted{size: 4 << 20}
	l := newSteppedLoop(t, session, nil)
	l.c.register()
	l.send("a")
	l.round()
	if l.c.drain(); l.c.unread.size == 0 || !l.c.finishing || l.c.lingering || l.c.events != unix.EPOLLOUT {
		t.Fatalf("%d bytes are unread, finishing: %v, it waits for %x", l.c.unread.size, l.c.finishing, l.c.events)
	}
	for range 10_000 {
		if l.received(); l.c.unread.size == 0 {
			break
		}
		l.round()
	}
	if !l.c.lingering || l.c.events != unix.EPOLLIN {
		t.Errorf("closed for writing: %v, it waits for %x", l.c.lingering, l.c.events)
	}
}

// A loop that was woken is silent again.
func TestWakeOnce(t *testing.T) {
	l := newSteppedLoop(t, &scripted{}, nil)
	l.asleep.Store(true)
	l.post(func() {})
	events := readable(l)
	if len(events) != 1 || events[0].Fd != int32(l.wakeFD) {
		t.Fatalf("%d events", len(events))
	}
	l.serve(&events[0])
	if events = readable(l); len(events) > 0 {
		t.Errorf("%d events are left", len(events))
	}
}

// Shutdown returns only once the loops have ended.
func TestShutdownEndsLoops(t *testing.T) {
	s := New(t.Context(), nil, &Options{Loops: 1})
	s.mu.Lock()
	s.startLoops()
	s.mu.Unlock()
	var ended atomic.Bool
	s.loops[0].post(func() {
		<-s.empty
		time.Sleep(10 * time.Millisecond)
		ended.Store(true)
	})
	if err := s.Shutdown(t.Context()); err != nil || !ended.Load() {
		t.Errorf("error %v; the loop has ended: %v", err, ended.Load())
	}
}
