package conns

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A scripted session answers each byte of its input: with size bytes, or later where that is set.
type scripted struct {
	c      *Conn
	size   int
	later  func(ctx context.Context, out []byte) []byte
	busy   bool // it does not let the client idle
	served int  // bytes
	calls  int
}

func (s *scripted) Serve(in, out []byte) (taken int, _ []byte) {
	s.calls++
	if s.later != nil {
		s.c.Later(s.later)
		s.later = nil
		return 1, out
	}
	s.served++
	return 1, append(out, bytes.Repeat(in[:1], s.size)...)
}

func (s *scripted) MayIdle() bool   { return !s.busy }
func (*scripted) HalfClosed([]byte) {}
func (*scripted) Closed()           {}

// A steppedLoop is a loop that a test runs round by round, with one connection.
type steppedLoop struct {
	*loop
	t    *testing.T
	s    *Server
	c    *loopConn
	peer *os.File
}

func newSteppedLoop(t *testing.T, session *scripted, opts *Options) *steppedLoop {
	t.Helper()
	s := New(context.Background(), func(c *Conn) Session { session.c = c; return session }, opts)
	l, err := newLoop(s)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	c := &loopConn{Conn: Conn{server: s, local: &net.TCPAddr{}, remote: &net.TCPAddr{}}, loop: l, fd: fds[0]}
	c.reading.conn, c.writing.conn = c, c
	if err := s.add(c); err != nil {
		t.Fatal(err)
	}
	sl := &steppedLoop{l, t, s, c, os.NewFile(uintptr(fds[1]), "peer")}
	t.Cleanup(func() {
		c.close()
		_ = sl.peer.Close()
		l.close()
	})
	return sl
}

// round serves the present events, and the queue.
func (l *steppedLoop) round() {
	events := make([]unix.EpollEvent, loopEvents)
	l.now = time.Time{}
	l.serveAll(events[:pollNow(l.epoll, events)])
	l.readMail()
	l.serveAgain()
}

func (l *steppedLoop) send(text string) {
	l.t.Helper()
	if _, err := l.peer.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

// received returns the client's unread bytes.
func (l *steppedLoop) received() string {
	var all bytes.Buffer
	_, _ = io.Copy(&all, &polled{l.peer})
	return all.String()
}

// A polled reads the present bytes, without a wait.
type polled struct{ f *os.File }

func (p *polled) Read(b []byte) (n int, err error) {
	raw, err := p.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), b) })
	if n = max(n, 0); n == 0 && err == nil {
		err = io.EOF
	}
	if failed != nil {
		err = failed
	}
	return n, err
}

// A loop waits for input alone, sends small replies together, and forgets what has ended.
func TestLoopServes(t *testing.T) {
	session := &scripted{size: 1}
	l := newSteppedLoop(t, session, nil)
	l.c.register()
	if l.c.events != unix.EPOLLIN {
		t.Errorf("it waits for %x", l.c.events)
	}
	l.out = append(l.out, make([]byte, turn+1)...) // of other connections
	l.c.serve([]byte("a"), true)
	if len(l.postponed) != 1 || l.received() != "" || l.c.busy {
		t.Errorf("%d replies are postponed, busy: %v", len(l.postponed), l.c.busy)
	}
	if l.flush(); l.received() != "a" {
		t.Error("not flushed")
	}
	l.out = make([]byte, 0, 5*loopBuffer)
	if l.flush(); cap(l.out) != loopBuffer {
		t.Errorf("a buffer of %d bytes is kept", cap(l.out))
	}
	l.c.begun = true
	if l.c.pauseRead(); l.c.begun || l.c.reading.list != nil {
		t.Error("its time goes on while it waits for the server")
	}
	fd := l.c.fd
	l.c.close()
	l.c.close()
	if open, _ := l.s.Stats(); l.conns[fd] != nil || open != 0 {
		t.Errorf("%d connections are left", open)
	}
}

// A connection that was cut before its loop knew it has no session.
func TestCutBeforeRegister(t *testing.T) {
	session := &scripted{size: 1}
	l := newSteppedLoop(t, session, nil)
	l.c.close()
	if l.c.register(); session.c != nil || l.c.events != 0 {
		t.Error("it is served")
	}
}

// The input and output of a turn count as work, and a full turn ends.
func TestTurns(t *testing.T) {
	session := &scripted{size: 5 << 10}
	l := newSteppedLoop(t, session, nil)
	l.c.register()
	session.size = 3 * workSize
	l.work = 0
	if taken, from := l.c.execute([]byte("a")); taken != 1 || from != 0 || l.work != 3 {
		t.Errorf("took %d from %d, work %d", taken, from, l.work)
	}
	l.out = l.out[:0]
	session.size, session.served = 5<<10, 0
	l.send("aaaaaaaa")
	l.serveAll(readable(l))
	if session.served != 4 || !l.c.busy || !l.c.queued || string(l.c.in) != "aaaa" {
		t.Errorf("%d requests in a turn, %d bytes are left", session.served, len(l.c.in))
	}
	for range 4 {
		l.round()
	}
	if got := len(l.received()); session.served != 8 || got != 8*session.size || l.c.queued {
		t.Errorf("%d requests, %d bytes of replies", session.served, got)
	}
}

// readable returns the present events.
func readable(l *steppedLoop) []unix.EpollEvent {
	events := make([]unix.EpollEvent, loopEvents)
	return events[:pollNow(l.epoll, events)]
}

// A connection reads little while the budget is spent, and before its first turn in the queue.
func TestReadLimit(t *testing.T) {
	budget := NewBudget(1)
	l := newSteppedLoop(t, &scripted{}, &Options{Budget: budget})
	for _, tt := range []struct {
		busy, spent bool
		want        int
	}{{false, false, smallRead}, {true, false, loopBuffer}, {true, true, smallRead}, {false, true, smallRead}} {
		if l.c.busy = tt.busy; tt.spent {
			budget.Add(1)
		}
		if got := l.c.readLimit(); got != tt.want {
			t.Errorf("%+v: %d bytes", tt, got)
		}
		if tt.spent {
			budget.Add(-1)
		}
	}
}

// A client that has left as much unread as it may gets no further request served, until it has read.
func TestBlockedConnection(t *testing.T) {
	session := &scripted{size: 1 << 20}
	l := newSteppedLoop(t, session, &Options{Budget: NewBudget(1)})
	l.c.register()
	l.send("aaa")
	l.round()
	if session.served != 1 || l.c.unread.size == 0 || !l.c.held || l.c.events != unix.EPOLLOUT {
		t.Fatalf("%d requests are served, %d bytes unread, held: %v, waits for %x", session.served, l.c.unread.size, l.c.held, l.c.events)
	}
	l.c.held = false
	if l.c.wantsInput() {
		t.Error("it wants input")
	}
	l.c.serve(l.c.in, false)
	if session.served != 1 {
		t.Error("a further request was served")
	}
	got := 0
	for range 10_000 {
		if got += len(l.received()); got == 3<<20 {
			break
		}
		l.round()
	}
	if got != 3<<20 || session.served != 3 || l.c.held || l.c.events != unix.EPOLLIN {
		t.Errorf("%d bytes came, %d requests are served, held: %v, waits for %x", got, session.served, l.c.held, l.c.events)
	}
	if l.write.first() != nil || l.s.opts.Budget.Used() != 0 {
		t.Errorf("a time limit is left, or %d bytes of the budget", l.s.opts.Budget.Used())
	}
}

// A client that reads has its time again, with each piece. While the budget is spent it has that time
// for all.
func TestWriteLimitIsRenewed(t *testing.T) {
	for _, spent := range []bool{false, true} {
		l := newSteppedLoop(t, &scripted{size: 4 << 20}, &Options{Budget: NewBudget(1 << 40)})
		l.c.register()
		l.send("a")
		l.round()
		first := l.c.writing.at
		if l.c.writing.list == nil || l.c.unread.size == 0 {
			t.Fatal("all was taken")
		}
		if spent {
			l.s.opts.Budget.Add(1 << 40)
		}
		for l.c.freed = 0; l.c.unread.size > 2<<20; {
			l.received()
			l.now = first // an hour from now, or so
			if !l.c.writeMore() {
				t.Fatal("ended")
			}
		}
		if renewed := !l.c.writing.at.Equal(first); renewed == spent {
			t.Errorf("with a spent budget %v: renewed %v", spent, renewed)
		}
	}
}

// A client whose time ends while its request waits, or is in the queue, gets the answers first.
func TestExpiredAmidRequests(t *testing.T) {
	release := make(chan struct{})
	parked := &scripted{busy: true, later: func(_ context.Context, out []byte) []byte { <-release; return append(out, "answer"...) }}
	l := newSteppedLoop(t, parked, nil)
	l.c.register()
	l.send("a")
	l.round()
	if !l.c.parked {
		t.Fatal("it does not wait")
	}
	l.c.expired()
	if got := l.received(); got != "" || l.c.finishing {
		t.Errorf("ended with %q", got)
	}
	close(release)
	for start := time.Now(); !l.c.finishing && time.Since(start) < time.Minute; time.Sleep(time.Millisecond) {
		l.round()
	}
	if got := l.received(); got != "answer" || !l.c.lingering {
		t.Errorf("the answer is %q", got)
	}

	queued := &scripted{busy: true, size: turn + 1}
	l = newSteppedLoop(t, queued, nil)
	l.c.register()
	l.send("aa")
	l.serveAll(readable(l))
	if !l.c.queued || queued.served != 1 || l.c.wantsInput() {
		t.Fatalf("%d requests are served, queued: %v, wants input: %v", queued.served, l.c.queued, l.c.wantsInput())
	}
	l.c.expired()
	l.serveAgain()
	if got := len(l.received()); got != 2*(turn+1) || !l.c.finishing {
		t.Errorf("%d bytes came, finishing: %v", got, l.c.finishing)
	}
}

// A connection that was closed for writing is read until its client closes it too, or sends too much.
func TestLinger(t *testing.T) {
	for _, much := range []bool{false, true} {
		l := newSteppedLoop(t, &scripted{}, nil)
		l.c.register()
		l.c.finish()
		l.c.listen()
		l.send("x")
		if l.round(); l.c.closed || l.c.discarded != 1 || !l.c.lingering {
			t.Errorf("closed: %v after %d bytes", l.c.closed, l.c.discarded)
		}
		if much {
			l.c.discarded = lingerSize - 1
			l.send("x")
		} else {
			_ = l.peer.Close()
		}
		if l.round(); !l.c.closed {
			t.Errorf("it is still open (too much: %v)", much)
		}
	}
}

// A connection that was cut while its request waits ends when that has.
func TestCutWhileParked(t *testing.T) {
	release := make(chan struct{})
	session := &scripted{later: func(_ context.Context, out []byte) []byte { <-release; return append(out, "answer"...) }}
	l := newSteppedLoop(t, session, nil)
	l.c.register()
	l.send("a")
	l.round()
	l.c.close()
	if open, _ := l.s.Stats(); open != 1 {
		t.Errorf("%d connections, and its request is still executed", open)
	}
	close(release)
	for open, start := 1, time.Now(); open > 0; open, _ = l.s.Stats() {
		if l.round(); time.Since(start) > time.Minute {
			t.Fatal("it does not end")
		}
	}
}

// Without descriptors for a loop a server goes without.
func TestNoDescriptorsForLoops(t *testing.T) {
	free, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(free.Fd())
	_ = free.Close()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for range 2 { // without one, and with one of two
		var log strings.Builder
		s := New(t.Context(), nil, &Options{Loops: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: next, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		s.startLoops()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if len(s.loops) > 0 || s.opts.Loops != 0 || !strings.Contains(log.String(), "without an event loop") {
			t.Errorf("%d loops, logged %s", len(s.loops), log.String())
		}
		next++
	}
}

// A write takes no more bytes than the system does.
func TestWriteOnce(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	if n, err := writeOnce(uintptr(fds[0]), []byte("abc")); n != 3 || err != nil {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	for n := 1; n > 0; {
		if n, err = writeOnce(uintptr(fds[0]), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 3)
	if n, err := unix.Read(fds[1], got); n != 3 || string(got) != "abc" {
		t.Errorf("read %q, %v", got, err)
	}
	_ = unix.Close(fds[1])
	if n, err := writeOnce(uintptr(fds[0]), got); err == nil {
		t.Errorf("wrote %d bytes without a reader", n)
	}
}
