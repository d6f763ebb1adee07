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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-id/leaf/internal/server/conns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServe(t *testing.T) { forms(t, testServe) }

func testServe(t *testing.T, form int) {
	s, addr := serve(t, newLines(nil), &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	ask(t, conn, r, "hello")
	ask(t, conn, r, strings.Repeat("x", 1000))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, r, "")
	until(t, "without connections", func() bool { open, _ := s.Stats(); return open == 0 })
}

// The server answers the requests that arrived before the client closed its side.
func TestHalfClosed(t *testing.T) { forms(t, testHalfClosed) }

func testHalfClosed(t *testing.T, form int) {
	_, addr := serve(t, newLines(nil), &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	fmt.Fprint(conn, "a\nb\nincomplete")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, r, "a\nb\n")
}

func TestMaxConns(t *testing.T) { forms(t, testMaxConns) }

func testMaxConns(t *testing.T, form int) {
	s, addr := serve(t, newLines(nil), &conns.Options{Loops: form, MaxConns: 2, Refusal: []byte("full\n")})
	first, r := dial(t, addr)
	ask(t, first, r, "a")
	second, r2 := dial(t, addr)
	ask(t, second, r2, "b")
	_, r3 := dial(t, addr)
	wantRefused(t, r3, form)
	if open, refused := s.Stats(); open != 2 || refused != 1 {
		t.Errorf("%d connections, %d refused", open, refused)
	}
	_ = first.Close()
	until(t, "room", func() bool { open, _ := s.Stats(); return open == 1 })
	fourth, r4 := dial(t, addr)
	ask(t, fourth, r4, "c")
}

// One client has no more connections than it may, and others have theirs.
func TestMaxPerClient(t *testing.T) { forms(t, testMaxPerClient) }

func testMaxPerClient(t *testing.T, form int) {
	given := make(chan net.Conn, 1)
	s, addr := serve(t, newLeaving(given), &conns.Options{Loops: form, MaxPerClient: 2, Refusal: []byte("full\n")})
	first, r := dial(t, addr)
	ask(t, first, r, "a")
	second, r2 := dial(t, addr)
	ask(t, second, r2, "b")
	_, r3 := dial(t, addr)
	wantRefused(t, r3, form)
	other, r4 := dialFrom(t, "127.0.0.2", addr)
	ask(t, other, r4, "c")
	if open, refused := s.Stats(); open != 3 || refused != 1 {
		t.Errorf("%d connections, %d refused", open, refused)
	}
	fmt.Fprint(first, "leave\n") // it counts where it is handed over to
	away := <-given
	_, r5 := dial(t, addr)
	wantRefused(t, r5, form)
	for _, leave := range []io.Closer{away, second} {
		open, _ := s.Stats()
		_ = leave.Close()
		until(t, "room", func() bool { now, _ := s.Stats(); return now < open })
		next, r := dial(t, addr)
		ask(t, next, r, "d")
	}
	_, r6 := dial(t, addr)
	wantRefused(t, r6, form)
}

// A server that stops answers the requests that it has read, those of a batch included,
// and sends the answers although input is left unread.
func TestShutdown(t *testing.T) { forms(t, testShutdown) }

func testShutdown(t *testing.T, form int) {
	entered, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s, addr := serve(t, newLines(func(line string) {
		if line == "wait" {
			once.Do(func() { close(entered) })
			<-hold
		}
	}), &conns.Options{Loops: form})
	idle, idleReader := dial(t, addr)
	ask(t, idle, idleReader, "a")
	busy, busyReader := dial(t, addr)
	fmt.Fprint(busy, "wait\nb\nc\n")
	<-entered
	fmt.Fprint(busy, strings.Repeat("unread\n", 100))
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	wantEnd(t, idleReader, "")
	_ = idle.Close()
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still accepts connections")
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned with a request in flight: %v", err)
	default:
	}
	s.Stats() // waits until all connections know
	close(hold)
	wantEnd(t, busyReader, "wait\nb\nc\n")
	_ = busy.Close()
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// A handler that does not end holds Shutdown up for as long as its context allows, and
// is cut off by Close.
func TestCut(t *testing.T) { forms(t, testCut) }

func testCut(t *testing.T, form int) {
	s, addr := serve(t, func(*conns.Conn) conns.Session { return new(flood) }, &conns.Options{Loops: form})
	conn, _ := dial(t, addr) // never reads
	fmt.Fprint(conn, strings.Repeat("x", 1000))
	until(t, "served", func() bool { open, _ := s.Stats(); return open == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	s.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown after Close: %v", err)
	}
}

// The server does not serve a connection that it accepts during the stop.
func TestServeAfterShutdown(t *testing.T) {
	s := conns.New(t.Context(), newLines(nil), nil)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is open")
	}
}

// A request must come in as a whole in time, however its bytes trickle; an idle connection
// has all the time it likes.
func TestSlowRequest(t *testing.T) { forms(t, testSlowRequest) }

func testSlowRequest(t *testing.T, form int) {
	t.Parallel()
	_, addr := serve(t, newLines(nil), &conns.Options{Loops: form, RequestTimeout: time.Second})
	idle, idleReader := dial(t, addr)
	ask(t, idle, idleReader, "a")
	slow, r := dial(t, addr)
	fmt.Fprint(slow, "a\nb") // another request came in pieces before
	if got, err := r.ReadString('\n'); got != "a\n" {
		t.Fatalf("answered %q, %v", got, err)
	}
	fmt.Fprint(slow, "c\n")
	if got, err := r.ReadString('\n'); got != "bc\n" {
		t.Fatalf("answered %q, %v", got, err)
	}
	stop := make(chan struct{})
	var trickle sync.WaitGroup
	trickle.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = slow.Write([]byte("x")) // fails when it is cut off
			}
		}
	})
	_, err := io.ReadAll(r) // it may be told of its unread bytes by a reset
	close(stop)
	trickle.Wait()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a request that never ends holds its connection")
	}
	ask(t, idle, idleReader, "c")
}

func TestIdleTimeout(t *testing.T) { forms(t, testIdleTimeout) }

func testIdleTimeout(t *testing.T, form int) {
	t.Parallel()
	_, addr := serve(t, newLines(nil), &conns.Options{Loops: form, IdleTimeout: 100 * time.Millisecond})
	_, r := dial(t, addr)
	wantEnd(t, r, "")
}

// A flood answers each byte with many.
type flood struct {
	written int
	ended   chan struct{} // nil: not told
	unknown bool
}

func (f *flood) Serve(in, out []byte) (int, []byte) {
	f.written += 1 << 16
	return 1, append(out, make([]byte, 1<<16)...)
}

func (f *flood) MayIdle() bool     { return !f.unknown }
func (f *flood) HalfClosed([]byte) {}

func (f *flood) Closed() {
	if f.ended != nil {
		close(f.ended)
	}
}

// A client that does not read is cut off, and holds up no other.
func TestClientThatNeverReads(t *testing.T) { forms(t, testClientThatNeverReads) }

func testClientThatNeverReads(t *testing.T, form int) {
	t.Parallel()
	bad := &flood{ended: make(chan struct{})}
	var once atomic.Bool
	_, addr := serve(t, func(c *conns.Conn) conns.Session {
		if !once.Swap(true) {
			return bad
		}
		return newLines(nil)(c)
	}, &conns.Options{Loops: form, WriteTimeout: 200 * time.Millisecond})
	conn, _ := dial(t, addr)
	fmt.Fprint(conn, strings.Repeat("x", 10_000)) // asks for 640 MB
	until(t, "served", once.Load)
	other, r := dial(t, addr)
	ask(t, other, r, "a")
	select {
	case <-bad.ended:
		if bad.written > 48<<20 { // 16 MiB, and the system's buffers
			t.Errorf("%d bytes were kept for the client", bad.written)
		}
	case <-time.After(timeout):
		t.Fatal("the client still holds its handler")
	}
	ask(t, other, r, "b")
}

// A client may send all that it has to ask before it reads the first answer.
func TestClientThatReadsLate(t *testing.T) { forms(t, testClientThatReadsLate) }

func testClientThatReadsLate(t *testing.T, form int) {
	_, addr := serve(t, newLines(nil), &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	ask := strings.Repeat(strings.Repeat("x", 9999)+"\n", 1200) // more than the system takes
	fmt.Fprint(conn, ask)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != ask {
		t.Errorf("%d bytes came back of %d, %v", len(got), len(ask), err)
	}
}

// A handler that panics ends its own connection.
func TestPanic(t *testing.T) { forms(t, testPanic) }

func testPanic(t *testing.T, form int) {
	var log bytes.Buffer
	s, addr := serve(t, newLines(nil), &conns.Options{Loops: form, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	bad, r := dial(t, addr)
	good, r2 := dial(t, addr)
	ask(t, good, r2, "a")
	fmt.Fprintln(bad, "panic")
	wantEnd(t, r, "")
	_ = bad.Close()
	until(t, "without the connection", func() bool { open, _ := s.Stats(); return open == 1 })
	ask(t, good, r2, "b")
	if !strings.Contains(log.String(), "a fault") {
		t.Errorf("the log: %s", &log)
	}
}
