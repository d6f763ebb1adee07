package conns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A Listener closes connections beyond its limits, logs the reason once, and counts those that end.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts conns.Options
		why  error
	}{
		{"in all", conns.Options{MaxConns: 2}, conns.ErrMaxConns},
		{"per client", conns.Options{MaxPerClient: 2}, conns.ErrMaxPerClient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			tt.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			l := conns.Limit(inner, tt.opts)
			accepted := make(chan net.Conn)
			go func() {
				defer close(accepted)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					accepted <- c
				}
			}()
			_, r := dial(t, inner.Addr().String())
			first := <-accepted
			dial(t, inner.Addr().String())
			second := <-accepted
			for range 2 { // it has no place
				_, over := dial(t, inner.Addr().String())
				wantEnd(t, over, "")
			}
			if open, refused := l.Stats(); open != 2 || refused != 2 {
				t.Errorf("%d connections, %d refused", open, refused)
			}
			if err := first.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
			wantEnd(t, r, "")
			_ = first.Close() // it counts once
			if err := first.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("closed again: %v", err)
			}
			dial(t, inner.Addr().String())
			third := <-accepted
			_, _ = second.Close(), third.Close()
			if open, refused := l.Stats(); open != 0 || refused != 2 {
				t.Errorf("at the end: %d connections, %d refused", open, refused)
			}
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.why.Error()) {
				t.Errorf("the log: %s", got)
			}
			_ = l.Close()
			if c, ok := <-accepted; ok {
				t.Errorf("accepted %v", c.RemoteAddr())
			}
		})
	}
	if open, refused := (*conns.Listener)(nil).Stats(); open != 0 || refused != 0 {
		t.Errorf("none has %d, %d", open, refused)
	}
}

// A server says once why it closes connections beyond its limit.
func TestRefusalIsLogged(t *testing.T) { forms(t, testRefusalIsLogged) }

func testRefusalIsLogged(t *testing.T, form int) {
	var log testserver.Output
	_, addr := serve(t, newLines(nil), &conns.Options{Loops: form, MaxConns: 1, Refusal: []byte("full\n"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	conn, r := dial(t, addr)
	ask(t, conn, r, "a")
	for range 2 {
		_, over := dial(t, addr)
		wantRefused(t, over, form)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, conns.ErrMaxConns.Error()) {
		t.Errorf("the log: %s", got)
	}
}

// A failing listener fails its first accepts with errors of its own.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, &net.OpError{Op: "accept", Err: err}
}

// A shortage of the system ends, so the server accepts again later; another error ends Serve.
func TestAcceptFails(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := conns.New(t.Context(), newLines(nil), &conns.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	served := make(chan error, 1)
	short := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	go func() { served <- s.Serve(&failing{inner, short}) }()
	conn, r := dial(t, inner.Addr().String())
	ask(t, conn, r, "a")
	_ = conn.Close()
	broken := errors.New("broken")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(&failing{other, []error{broken}}); !errors.Is(err, broken) {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, pause := range []string{"pause=5ms", "pause=10ms", "pause=20ms", "pause=40ms", "pause=80ms"} {
		if strings.Count(log.String(), pause+"\n") != 1 {
			t.Errorf("the log lacks %s: %s", pause, &log)
		}
	}
}

// The memory that a client's unread replies and unserved requests take is in the budget until the
// client reads, leaves, or is handed over and read there.
func TestBudget(t *testing.T) { forms(t, testBudget) }

func testBudget(t *testing.T, form int) {
	budget := conns.NewBudget(1 << 40)
	given := make(chan net.Conn, 1)
	s, addr := serve(t, newLeaving(given), &conns.Options{Loops: form, Budget: budget})
	free := func(what string) {
		t.Helper()
		until(t, what, func() bool { return budget.Used() == 0 })
	}
	line := strings.Repeat("x", 9999) + "\n"
	const n = 1200 // more than the system takes
	for _, reads := range []bool{true, false} {
		conn, r := dial(t, addr)
		if _, err := io.WriteString(conn, strings.Repeat(line, n)); err != nil {
			t.Fatal(err)
		}
		until(t, "charged", func() bool { return budget.Used() > 0 })
		if reads {
			if _, err := io.ReadFull(r, make([]byte, n*len(line))); err != nil {
				t.Fatal(err)
			}
			free("free when the client has read")
			ask(t, conn, r, "b")
		} else if conn.SetLinger(0) != nil {
			t.Fatal("linger")
		}
		_ = conn.Close()
		free("free when the client has gone")
	}
	if form > 0 { // a goroutine has its input in a buffer of bounded size
		conn, _ := dial(t, addr)
		fmt.Fprint(conn, "incomplete")
		until(t, "charged for the request", func() bool { return budget.Used() > 0 })
		_ = conn.Close()
		free("free without the request")
	}
	for _, read := range []bool{true, false} {
		conn, _ := dial(t, addr)
		fmt.Fprint(conn, "leave\nrest")
		away := <-given
		if budget.Used() == 0 {
			t.Error("the rest of a connection that was handed over is not charged")
		}
		if read {
			if _, err := io.ReadFull(away, make([]byte, 4)); err != nil {
				t.Error(err)
			}
			free("free when the heir has read")
		}
		_ = away.Close()
		free("free when the heir has closed")
	}
	until(t, "without connections", func() bool { open, _ := s.Stats(); return open == 0 })
}

// An unknown client that does not read gets no further answer: it cannot use up the others' memory.
func TestUnknownClientThatDoesNotRead(t *testing.T) { forms(t, testUnknownClientThatDoesNotRead) }

func testUnknownClientThatDoesNotRead(t *testing.T, form int) {
	budget := conns.NewBudget(1 << 30)
	ended := make(chan struct{})
	f := &flood{unknown: true, ended: ended}
	s, addr := serve(t, func(*conns.Conn) conns.Session { return f }, &conns.Options{Loops: form, Budget: budget})
	conn, _ := dial(t, addr)
	fmt.Fprint(conn, strings.Repeat("a", 1000))
	until(t, "charged", func() bool { return budget.Used() > 0 })
	_ = conn.Close()
	until(t, "closed", func() bool { open, _ := s.Stats(); return open == 0 })
	<-ended
	if f.written > 10<<20 { // the system takes most of it
		t.Errorf("%d bytes of answers were made", f.written)
	}
}

// A piecemeal answers each byte with many pieces, which it makes one after the other.
type piecemeal struct {
	c      *conns.Conn
	left   int
	served int // calls of Serve
	made   chan<- int
}

const pieces, pieceSize = 1500, 8 << 10 // more than the system takes

func (s *piecemeal) Serve(_, out []byte) (taken int, _ []byte) {
	s.served++
	if s.left == 0 {
		s.left = pieces
	}
	s.left--
	out = append(out, bytes.Repeat([]byte{byte(s.left)}, pieceSize)...)
	if s.left > 0 {
		s.c.More()
		return 0, out
	}
	s.made <- s.served
	return 1, out
}

func (*piecemeal) MayIdle() bool     { return true }
func (*piecemeal) HalfClosed([]byte) {}
func (*piecemeal) Closed()           {}

// A session makes a long reply in pieces, at the pace of its client; other clients are served, and
// further requests of its own wait.
func TestMore(t *testing.T) { forms(t, testMore) }

func testMore(t *testing.T, form int) {
	made := make(chan int, 2)
	_, addr := serve(t, func(c *conns.Conn) conns.Session { return &piecemeal{c: c, made: made} },
		&conns.Options{Loops: form, Budget: conns.NewBudget(1)}) // spent at once
	conn, r := dial(t, addr)
	fmt.Fprint(conn, "12")
	buf := make([]byte, pieceSize)
	for round := range 2 {
		for i := range pieces {
			if _, err := io.ReadFull(r, buf); err != nil {
				t.Fatal(err)
			}
			if left := byte(pieces - 1 - i); buf[0] != left || buf[pieceSize-1] != left {
				t.Fatalf("answer %d: not piece %d", round, i)
			}
			if round == 0 && i == 0 && len(made) > 0 {
				t.Error("all was made before the client read")
			}
		}
	}
	if first, second := <-made, <-made; first != pieces || second != 2*pieces {
		t.Errorf("%d and %d calls", first, second)
	}
}

// A session knows both addresses of its connection.
func TestAddresses(t *testing.T) { forms(t, testAddresses) }

func testAddresses(t *testing.T, form int) {
	got := make(chan string, 1)
	_, addr := serve(t, func(c *conns.Conn) conns.Session {
		got <- fmt.Sprintln(c.LocalAddr(), c.RemoteAddr(), c.TLS() == nil)
		return newLines(nil)(c)
	}, &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	ask(t, conn, r, "a")
	if got, want := <-got, fmt.Sprintln(addr, conn.LocalAddr(), form != encrypted); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What waits gets the server's context.
func TestLaterHasTheContext(t *testing.T) { forms(t, testLaterHasTheContext) }

func testLaterHasTheContext(t *testing.T, form int) {
	type key struct{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := conns.New(context.WithValue(t.Context(), key{}, "here\n"), func(c *conns.Conn) conns.Session { return &asking{c, key{}} }, &conns.Options{Loops: form})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, r := dial(t, l.Addr().String())
	ask(t, conn, r, "here")
	_ = conn.Close()
	if err := errors.Join(s.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
}

// An asking answers with a value of its context.
type asking struct {
	c   *conns.Conn
	key any
}

func (s *asking) Serve(in, out []byte) (int, []byte) {
	s.c.Later(func(ctx context.Context, out []byte) []byte {
		text, _ := ctx.Value(s.key).(string)
		return append(out, text...)
	})
	return len(in), out
}

func (*asking) MayIdle() bool     { return true }
func (*asking) HalfClosed([]byte) {}
func (*asking) Closed()           {}
