package conns_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
)

// While a request of one connection waits, others are served, and its own stay in order.
func TestLater(t *testing.T) { forms(t, testLater) }

func testLater(t *testing.T, form int) {
	const limit = 500 * time.Millisecond // longer than a busy machine needs for a request
	hold := make(chan struct{})
	s, addr := serve(t, newLines(func(line string) {
		if line == "wait" {
			<-hold
		}
	}), &conns.Options{Loops: form, RequestTimeout: limit, IdleTimeout: time.Minute})
	waiting, w := dial(t, addr)
	fmt.Fprint(waiting, "a\nwait\nb\n")
	if got, err := w.ReadString('\n'); got != "a\n" {
		t.Fatalf("the reply before the wait: %q, %v", got, err)
	}
	gone, _ := dial(t, addr)
	fmt.Fprint(gone, "wait\n")
	other, r := dial(t, addr)
	for range 100 {
		ask(t, other, r, "c")
	}
	if err := gone.reset(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(waiting, "d\n")
	time.Sleep(limit) // the handler's time is not the client's
	close(hold)
	for _, want := range []string{"wait\n", "b\n", "d\n"} {
		if got, err := w.ReadString('\n'); got != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
	until(t, "without the client that has gone", func() bool { open, _ := s.Stats(); return open == 2 })
}

// Clients killed amid their replies leave nothing behind, and no reply reaches another client: each
// has words of its own.
func TestKilledClients(t *testing.T) { forms(t, testKilledClients) }

func testKilledClients(t *testing.T, form int) {
	s, addr := serve(t, newLines(func(string) {}), &conns.Options{Loops: form})
	quick, quickAddr := serve(t, newLines(nil), &conns.Options{Loops: form})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for round := range 25 {
				addr := []string{addr, quickAddr}[round%2]
				if err := exchange(addr, fmt.Sprintf("client %d round %d", i, round), round%3 > 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	for _, s := range []*conns.Server{s, quick} {
		until(t, "without connections", func() bool { open, _ := s.Stats(); return open == 0 })
	}
}

// exchange sends a line many times, in pieces, and reads the answers; a killed client
// reads only some of them.
func exchange(addr, line string, killed bool) error {
	conn, err := connect("127.0.0.1", addr)
	if err != nil {
		return err
	}
	defer conn.tcp.Close()
	text := []byte(strings.Repeat(line+"\n", 200))
	go func() {
		for len(text) > 0 {
			n, err := conn.Write(text[:1+rand.IntN(len(text))])
			if text = text[n:]; err != nil {
				return // it was killed
			}
		}
	}()
	r := bufio.NewReader(conn)
	for range 200 {
		if killed && rand.IntN(100) == 0 {
			return conn.tcp.SetLinger(0)
		}
		if got, err := r.ReadString('\n'); err != nil || got != line+"\n" {
			return fmt.Errorf("%s: answered %q, %w", line, got, err)
		}
	}
	return nil
}

// A server that stops in the middle of many pipelines answers all executed requests.
func TestShutdownUnderLoad(t *testing.T) { forms(t, testShutdownUnderLoad) }

func testShutdownUnderLoad(t *testing.T, form int) {
	line := strings.Repeat("x", 200) + "\n"
	var done atomic.Int64
	s, addr := serve(t, newLines(func(string) { done.Add(1) }), &conns.Options{Loops: form})
	var clients sync.WaitGroup
	var answered atomic.Int64
	for range 8 {
		conn, r := dial(t, addr)
		const row, rows = 50, 20
		more := make(chan struct{}, rows) // the input after the server closed for writing must fit into its timeout
		for range rows {
			more <- struct{}{}
		}
		go func() {
			for range more {
				if _, err := conn.Write([]byte(strings.Repeat(line, row))); err != nil {
					return
				}
			}
		}()
		clients.Go(func() {
			defer close(more)
			for n := 1; ; n++ {
				got, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if n%row == 0 {
					more <- struct{}{}
				}
				if answered.Add(1); got != line {
					t.Errorf("%q", got)
				}
			}
		})
	}
	until(t, "under load", func() bool { return answered.Load() > 1000 })
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	clients.Wait()
	if done.Load() != answered.Load() {
		t.Errorf("%d requests were carried out, %d answered", done.Load(), answered.Load())
	}
}

// A connection continues after it was handed over, and counts until its end.
func TestHandOver(t *testing.T) { forms(t, testHandOver) }

func testHandOver(t *testing.T, form int) {
	given := make(chan net.Conn, 1)
	s, addr := serve(t, newLeaving(given), &conns.Options{Loops: form, MaxConns: 1, Refusal: []byte("full\n")})
	conn, r := dial(t, addr)
	fmt.Fprint(conn, "a\nleave\nb\nc")
	got := <-given
	fmt.Fprintln(conn, "d")
	for rest, want := bufio.NewReader(got), "b\n"; want != ""; want = map[string]string{"b\n": "cd\n"}[want] {
		if line, err := rest.ReadString('\n'); line != want {
			t.Errorf("%q, %v, want %q", line, err, want)
		}
	}
	if _, ok := got.(interface{ CloseWrite() error }); !ok {
		t.Error("it cannot be closed for writing alone, which net/http does before it drops input")
	}
	if open, _ := s.Stats(); open != 1 {
		t.Errorf("%d connections", open)
	}
	_, second := dial(t, addr)
	wantRefused(t, second, form)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	fmt.Fprint(got, "e")
	if err := got.Close(); err != nil {
		t.Error(err)
	}
	if err := got.Close(); !errors.Is(err, net.ErrClosed) { // it counts once
		t.Errorf("closed again: %v", err)
	}
	wantEnd(t, r, "a\ne")
	if open, _ := s.Stats(); open != 0 {
		t.Errorf("%d connections", open)
	}
}

// The server can also hand over the rest after the client has closed its side.
func TestHandOverAtEnd(t *testing.T) { forms(t, testHandOverAtEnd) }

func testHandOverAtEnd(t *testing.T, form int) {
	given := make(chan net.Conn, 1)
	_, addr := serve(t, newLeaving(given), &conns.Options{Loops: form})
	conn, r := dial(t, addr)
	fmt.Fprint(conn, "a\nmore")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got := <-given
	if rest, err := io.ReadAll(got); err != nil || string(rest) != "more" {
		t.Errorf("%q, %v", rest, err)
	}
	fmt.Fprint(got, "b")
	_ = got.Close()
	wantEnd(t, r, "a\nb")
}

// A connection whose client has gone is handed over as that client's: limits go by its address.
func TestHandOverOfTheGone(t *testing.T) { forms(t, testHandOverOfTheGone) }

func testHandOverOfTheGone(t *testing.T, form int) {
	given, waits, hold := make(chan net.Conn, 1), make(chan struct{}), make(chan struct{})
	waiting := func(c *conns.Conn) conns.Session {
		return &leaving{lines{c: c, heir: func(c net.Conn) { given <- c }}, waits, hold}
	}
	_, addr := serve(t, waiting, &conns.Options{Loops: form})
	conn, _ := dial(t, addr)
	fmt.Fprint(conn, "a")
	<-waits
	if err := conn.reset(); err != nil {
		t.Fatal(err)
	}
	close(hold)
	got := <-given
	if from := got.RemoteAddr(); from == nil || from.String() != conn.LocalAddr().String() {
		t.Errorf("from %v, want %v", from, conn.LocalAddr())
	}
	_ = got.Close()
}

// A leaving waits, and then hands its connection over.
type leaving struct {
	lines
	waits chan<- struct{} // closed when it does; nil: it has waited
	hold  <-chan struct{}
}

func (s *leaving) Serve(_, out []byte) (taken int, _ []byte) {
	if s.waits == nil {
		s.c.HandOver(s.heir)
		return 0, out
	}
	waits := s.waits
	s.waits = nil
	s.c.Later(func(_ context.Context, out []byte) []byte {
		close(waits)
		<-s.hold
		return out
	})
	return 0, out
}

// A client that may leave less unread, since others leave much, is served on when it reads,
// also where the others have read meanwhile and it sends nothing more.
func TestSharedBacklog(t *testing.T) { forms(t, testSharedBacklog) }

func testSharedBacklog(t *testing.T, form int) {
	const n = 2000
	var made atomic.Int64
	s, addr := serve(t, func(*conns.Conn) conns.Session { return wordy{&made} }, &conns.Options{Loops: form})
	s.AddUnread(conns.DefaultBudget)
	conn, r := dial(t, addr)
	if _, err := conn.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	until(t, "at a standstill", func() bool {
		before := made.Load()
		time.Sleep(20 * time.Millisecond)
		return before > 0 && made.Load() == before
	})
	if made.Load() == n {
		t.Fatal("the client may leave all replies unread")
	}
	s.AddUnread(-conns.DefaultBudget)
	if _, err := io.ReadFull(r, make([]byte, n*wordyReply)); err != nil {
		t.Error(err)
	}
}

const wordyReply = 8 << 10

// A wordy answers each byte with many.
type wordy struct{ made *atomic.Int64 }

func (s wordy) Serve(_, out []byte) (taken int, _ []byte) {
	s.made.Add(1)
	return 1, append(out, make([]byte, wordyReply)...)
}

func (wordy) MayIdle() bool     { return true }
func (wordy) HalfClosed([]byte) {}
func (wordy) Closed()           {}
