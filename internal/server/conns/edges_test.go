package conns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/testserver"
)

// An eager takes a byte at once, and then makes a long answer in pieces.
type eager struct {
	c      *conns.Conn
	left   int
	astray *atomic.Int64 // calls without anything to do
}

func (s *eager) Serve(in, out []byte) (taken int, _ []byte) {
	switch {
	case s.left > 0:
	case len(in) == 0:
		s.astray.Add(1)
		return 0, out
	default:
		s.left, taken = pieces, 1
	}
	if s.left--; s.left > 0 {
		s.c.More()
	}
	return taken, append(out, bytes.Repeat([]byte{byte(s.left)}, pieceSize)...)
}

func (*eager) MayIdle() bool     { return true }
func (*eager) HalfClosed([]byte) {}
func (*eager) Closed()           {}

// A session that has taken all its input is called until its answer ends, and then no more.
func TestMoreWithoutInput(t *testing.T) { forms(t, testMoreWithoutInput) }

func testMoreWithoutInput(t *testing.T, form int) {
	var astray atomic.Int64
	_, addr := serve(t, func(c *conns.Conn) conns.Session { return &eager{c: c, astray: &astray} }, &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	for range 2 {
		fmt.Fprint(conn, "1")
		buf := make([]byte, pieceSize)
		for i := range pieces {
			if _, err := io.ReadFull(r, buf); err != nil || buf[0] != byte(pieces-1-i) {
				t.Fatalf("piece %d is %d, %v", i, buf[0], err)
			}
		}
	}
	if n := astray.Load(); n > 0 {
		t.Errorf("%d calls had nothing to do", n)
	}
}

// A connection is handed over after its client has read all earlier replies.
func TestHandOverAfterUnread(t *testing.T) { forms(t, testHandOverAfterUnread) }

func testHandOverAfterUnread(t *testing.T, form int) {
	given := make(chan net.Conn, 1)
	_, addr := serve(t, newLeaving(given), &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	line := strings.Repeat("x", 9999) + "\n"
	const n = 1200 // more than the system takes
	fmt.Fprint(conn, strings.Repeat(line, n)+"leave\nrest")
	time.Sleep(20 * time.Millisecond) // not for an event: so that it may leave too early
	if len(given) > 0 {
		t.Fatal("it left before its client had read")
	}
	if _, err := io.ReadFull(r, make([]byte, n*len(line))); err != nil {
		t.Fatal(err)
	}
	got := <-given
	rest := make([]byte, 4)
	if _, err := io.ReadFull(got, rest); err != nil || string(rest) != "rest" {
		t.Errorf("the heir reads %q, %v", rest, err)
	}
	fmt.Fprint(got, "bye")
	_ = got.Close()
	wantEnd(t, r, "bye")
}

// A session may hand its connection over before it has served a request.
func TestHandOverAtOnce(t *testing.T) { forms(t, testHandOverAtOnce) }

func testHandOverAtOnce(t *testing.T, form int) {
	given := make(chan net.Conn, 1)
	_, addr := serve(t, func(c *conns.Conn) conns.Session {
		c.HandOver(func(conn net.Conn) { given <- conn })
		return newLines(nil)(c)
	}, &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	fmt.Fprint(conn, "a\n")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got := <-given
	if all, err := io.ReadAll(got); string(all) != "a\n" || err != nil {
		t.Errorf("the heir reads %q, %v", all, err)
	}
	_ = got.Close()
	wantEnd(t, r, "")
}

// The heir's time limits hold.
func TestLimitsAfterHandOver(t *testing.T) { forms(t, testLimitsAfterHandOver) }

func testLimitsAfterHandOver(t *testing.T, form int) {
	given := make(chan net.Conn, 1)
	_, addr := serve(t, newLeaving(given), &conns.Options{Loops: form})
	conn, _ := dial(t, addr)
	fmt.Fprint(conn, "leave\n")
	got := <-given
	defer got.Close()
	if err := errors.Join(got.SetReadDeadline(time.Unix(1, 0)), got.SetWriteDeadline(time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := got.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read with %v", err)
	}
	if _, err := got.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote with %v", err)
	}
}

// A panic of a waiting request ends its own connection.
func TestPanicLater(t *testing.T) { forms(t, testPanicLater) }

func testPanicLater(t *testing.T, form int) {
	var log testserver.Output
	s, addr := serve(t, newLines(func(line string) {
		if line == "panic later" {
			panic("a fault")
		}
	}), &conns.Options{Loops: form, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	bad, r := dial(t, addr)
	good, r2 := dial(t, addr)
	ask(t, good, r2, "a")
	fmt.Fprintln(bad, "panic later")
	wantEnd(t, r, "")
	_ = bad.Close()
	until(t, "without the connection", func() bool { open, _ := s.Stats(); return open == 1 })
	ask(t, good, r2, "b")
	if !strings.Contains(log.String(), "a fault") {
		t.Errorf("the log: %s", log.String())
	}
}

// A halved notes what its client leaves at its end.
type halved struct {
	c    *conns.Conn
	rest chan<- string
}

func (s *halved) Serve(in, out []byte) (taken int, _ []byte) {
	taken = bytes.LastIndexByte(in, '\n') + 1
	return taken, append(out, in[:taken]...)
}

func (*halved) MayIdle() bool            { return true }
func (s *halved) HalfClosed(rest []byte) { s.rest <- string(rest) }
func (s *halved) Closed()                { close(s.rest) }

// A session learns of what its client has left, and of nothing else.
func TestHalfClosedWithRest(t *testing.T) { forms(t, testHalfClosedWithRest) }

func testHalfClosedWithRest(t *testing.T, form int) {
	for input, want := range map[string]string{"": "", "a\n": "", "a\nrest": "rest", "rest": "rest"} {
		rest := make(chan string, 9)
		_, addr := serve(t, func(c *conns.Conn) conns.Session { return &halved{c, rest} }, &conns.Options{Loops: form})
		conn, r := dial(t, addr)
		fmt.Fprint(conn, input)
		if form == encrypted && input == "" { // no handshake without a word
			if err := conn.Conn.(interface{ HandshakeContext(context.Context) error }).HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, r, input[:strings.LastIndexByte(input, '\n')+1])
		var got []string
		for text := range rest {
			got = append(got, text)
		}
		if strings.Join(got, ",") != want || len(got) > 1 {
			t.Errorf("%q leaves %q", input, got)
		}
	}
}
