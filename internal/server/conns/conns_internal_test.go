package conns

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A server has a loop for two processors, one at least, and none with TLS.
func TestDefaultLoops(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 1, 8: 4} {
		runtime.GOMAXPROCS(processors)
		if got := New(t.Context(), nil, nil).opts.Loops; got != want {
			t.Errorf("%d loops for %d processors", got, processors)
		}
	}
	opts := New(t.Context(), nil, &Options{MaxConns: 3, RequestTimeout: 4, WriteTimeout: 5, Loops: 6}).opts
	if opts.MaxConns != 3 || opts.RequestTimeout != 4 || opts.WriteTimeout != 5 || opts.Loops != 6 {
		t.Errorf("got %+v", opts)
	}
	opts = New(t.Context(), nil, nil).opts
	if opts.MaxConns != DefaultMaxConns || opts.RequestTimeout != DefaultRequestTimeout || opts.WriteTimeout != DefaultWriteTimeout || opts.Budget.limit != DefaultBudget {
		t.Errorf("got %+v", opts)
	}
}

// A named is a peer with an address.
type named struct{ addr net.Addr }

func (p named) RemoteAddr() net.Addr { return p.addr }
func (named) stop()                  {}
func (named) cut()                   {}

// A server is empty once, whichever of a hand-over and of its connection's end comes last.
func TestEmptyOnce(t *testing.T) {
	for _, removedFirst := range []bool{true, false} {
		s := New(t.Context(), nil, &Options{MaxPerClient: 1})
		p := &named{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}
		if err := s.add(p); err != nil {
			t.Fatal(err)
		}
		s.depart(p)
		if s.stop(); s.drained {
			t.Error("it is empty during a hand-over")
		}
		if removedFirst {
			s.remove(p)
		}
		ended := make(chan struct{})
		s.give(nil, func(net.Conn) { close(ended) })
		<-ended
		<-s.empty
		if !removedFirst {
			s.remove(p)
		}
		if open, _ := s.Stats(); open != 1 {
			t.Errorf("%d connections, want the one that is away", open)
		}
		if s.closedAway(p.addr); s.clients.Add(p.addr) != 1 {
			t.Error("it still counts for its client")
		}
	}
}

type known struct{ Session }

func (known) MayIdle() bool { return true }

// A backlog charges waiting and written bytes, and nothing once all are written or cannot be.
func TestBacklogCharges(t *testing.T) {
	for _, fails := range []bool{false, true} {
		budget := NewBudget(1 << 30)
		ours, theirs := net.Pipe() // which keeps nothing
		c := newStream(New(context.Background(), nil, &Options{Budget: budget}), ours)
		c.session = known{}
		if err := c.write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		for begun := false; !begun; time.Sleep(time.Millisecond) {
			c.backlog.mu.Lock()
			begun = c.backlog.waiting == nil
			c.backlog.mu.Unlock()
		}
		if err := c.write(make([]byte, 500)); err != nil || budget.Used() < 1500 || budget.Used() > 4000 || c.backlog.empty() {
			t.Errorf("%d bytes are charged, %v", budget.Used(), err)
		}
		if fails {
			_ = theirs.Close()
			if err := c.backlog.wait(); !errors.Is(err, io.ErrClosedPipe) || c.backlog.empty() {
				t.Errorf("ended with %v", err)
			}
			if err := c.write([]byte("a")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("a later write: %v", err)
			}
		} else if _, err := io.ReadFull(theirs, make([]byte, 1500)); err != nil || c.backlog.wait() != nil || !c.backlog.empty() {
			t.Errorf("read with %v", err)
		}
		if got := budget.Used(); got != 0 {
			t.Errorf("%d bytes are charged at the end", got)
		}
		_, _ = ours.Close(), theirs.Close()
	}
}

// While the budget is spent a reply waits until the client has read those before.
func TestBacklogWaits(t *testing.T) {
	budget := NewBudget(1)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	defer ours.Close()
	c := newStream(New(context.Background(), nil, &Options{Budget: budget}), ours)
	if err := c.write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.write([]byte("b")) }()
	first := make([]byte, 9)
	if _, err := io.ReadFull(theirs, first); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
		t.Error("it did not wait")
	case <-time.After(20 * time.Millisecond): // not for an event: so that it may be wrong
	}
	if _, err := io.ReadFull(theirs, first[:2]); err != nil || first[1] != 'b' {
		t.Errorf("read %q, %v", first[:2], err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.backlog.wait(); err != nil {
		t.Error(err)
	}
}

// A deadlined connection counts the time limits of its writes.
type deadlined struct {
	net.Conn
	limits, free int
}

func (c *deadlined) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.free++
	} else {
		c.limits++
	}
	return nil
}

// Each piece of a backlog has its time; while the budget is spent all have one together.
func TestBacklogLimits(t *testing.T) {
	for limit, want := range map[int64]int{1: 1, 1 << 40: 4} {
		ours, theirs := net.Pipe()
		conn := &deadlined{Conn: ours}
		c := newStream(New(context.Background(), nil, &Options{Budget: NewBudget(limit)}), conn)
		if err := c.write(make([]byte, 3*piece+1)); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadFull(theirs, make([]byte, 3*piece+1))
		if err = errors.Join(err, c.backlog.wait()); err != nil || conn.limits != want || conn.free != 1 {
			t.Errorf("a budget of %d bytes: %d limits, free %d times, %v", limit, conn.limits, conn.free, err)
		}
		_, _ = ours.Close(), theirs.Close()
	}
}

// A connection that cannot be closed for writing alone is closed.
func TestNoHalfClose(t *testing.T) {
	ours, theirs := net.Pipe()
	if err := (&limited{Conn: ours}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("closed for writing: %v", err)
	}
	newStream(New(context.Background(), nil, nil), ours).finish()
	if n, err := theirs.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// tcpPair returns both ends of a connection.
func tcpPair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// Replies go directly to a client that reads, again after it has left some unread.
func TestStreamWritesDirectly(t *testing.T) {
	ours, theirs := tcpPair(t)
	c := newStream(New(context.Background(), nil, nil), ours)
	if !c.send([]byte("a")) || c.late {
		t.Error("a small reply went to the backlog")
	}
	large := make([]byte, 16<<20)
	if !c.send(large) || !c.late || c.reply != nil {
		t.Error("a large reply was taken at once, or is kept")
	}
	if _, err := io.ReadFull(theirs, append(large, 0)); err != nil {
		t.Fatal(err)
	}
	if err := c.backlog.wait(); err != nil {
		t.Fatal(err)
	}
	if !c.send(make([]byte, 1, keepOutput)) || c.late || cap(c.reply) != keepOutput {
		t.Error("a reply goes to the backlog, which is empty, or is not kept")
	}
	_ = theirs.(*net.TCPConn).SetLinger(0)
	_ = theirs.Close()
	for c.send(large[:1<<16]) {
		runtime.Gosched() // until the reset has come
	}
	if !c.gone {
		t.Error("the client has gone")
	}
}

// The input buffer grows with the input, and shrinks when it is empty.
func TestMakeRoom(t *testing.T) {
	for _, tt := range []struct{ size, start, end, want int }{
		{smallInput, 0, 10, smallInput},
		{smallInput, smallInput, smallInput, 2 * smallInput}, // it was full
		{smallInput, 0, smallInput, 2 * smallInput},          // and all is needed
		{smallInput, 10, smallInput, 2 * smallInput},
		{smallInput, 10, smallInput - 1, smallInput},
		{bulkInput, 10, bulkInput, bulkInput},
		{bulkInput, 0, bulkInput, 2 * bulkInput},
		{2 * bulkInput, 2 * bulkInput, 2 * bulkInput, bulkInput}, // empty
		{2 * bulkInput, 0, 1, 2 * bulkInput},
		{MaxInput, 0, MaxInput, MaxInput},
	} {
		c := &stream{in: make([]byte, tt.size), start: tt.start, end: tt.end}
		for i := range c.in {
			c.in[i] = byte(i)
		}
		c.makeRoom()
		if len(c.in) != tt.want || c.start != 0 || c.end != tt.end-tt.start || c.end > 0 && (c.in[0] != byte(tt.start) || c.in[c.end-1] != byte(tt.end-1)) {
			t.Errorf("%+v: %d bytes, from %d to %d", tt, len(c.in), c.start, c.end)
		}
	}
}

// Errors that mean a shortage of the system.
func TestIsTemporary(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if !isTemporary(&os.SyscallError{Syscall: "accept", Err: err}) {
			t.Errorf("%v lasts", err)
		}
	}
	if isTemporary(syscall.EINVAL) || isTemporary(net.ErrClosed) {
		t.Error("an error that lasts is temporary")
	}
}

// The earlier input of a connection after a handover is read first, and charged until then.
func TestHandedInput(t *testing.T) {
	budget := NewBudget(1 << 20)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	s := New(t.Context(), nil, &Options{Budget: budget})
	rest := []byte("abc")
	c := s.keep(ours, rest)
	clear(rest) // it has a copy
	if budget.Used() < 3 {
		t.Errorf("%d bytes are charged", budget.Used())
	}
	got := make([]byte, 2)
	for _, want := range []string{"ab", "c"} {
		if n, err := c.Read(got); string(got[:n]) != want || err != nil {
			t.Errorf("read %q, %v", got[:n], err)
		}
	}
	if budget.Used() != 0 || c.rest != nil {
		t.Errorf("%d bytes are charged for what was read", budget.Used())
	}
	var sent sync.WaitGroup
	sent.Go(func() { _, _ = theirs.Write([]byte("d")) })
	if n, err := c.Read(got); string(got[:n]) != "d" || err != nil {
		t.Errorf("read %q, %v", got[:n], err)
	}
	sent.Wait()
	if err := c.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a pipe is closed for writing: %v", err)
	}
	unreadConn := s.keep(ours, []byte("abc"))
	_ = unreadConn.Close()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are charged for a closed connection", budget.Used())
	}
}

// A client without connections takes no memory.
func TestClientsAreForgotten(t *testing.T) {
	t.Parallel()
	var c Clients
	addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	c.Add(addr)
	c.Add(addr)
	c.Remove(addr)
	if len(c.open) != 1 {
		t.Error("a client with a connection is forgotten")
	}
	if c.Remove(addr); len(c.open) != 0 {
		t.Errorf("%d clients are kept", len(c.open))
	}
}
