package conns_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
)

// A client without TLS learns that it needs it, and does not reach the handler.
func TestNeedsTLS(t *testing.T) {
	var handled atomic.Int64
	_, addr := serve(t, func(c *conns.Conn) conns.Session {
		handled.Add(1)
		return newLines(nil)(c)
	}, &conns.Options{Loops: encrypted, NeedsTLS: []byte("use TLS\n")})
	bad, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	fmt.Fprintln(bad, "hello")
	wantEnd(t, bad, "use TLS\n")
	good, r := dial(t, addr)
	ask(t, good, r, "hello")
	if n := handled.Load(); n != 1 {
		t.Errorf("%d connections were handled, want 1", n)
	}
}

// Stalled handshakes end in time, and hold up no other client.
func TestStalledHandshakes(t *testing.T) {
	const stalled = 200
	s, addr := serve(t, newLines(nil), &conns.Options{Loops: encrypted, RequestTimeout: 3 * time.Second})
	for i := range stalled {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("\x16\x03\x01\x02\x00\x01")[:i%7]); err != nil { // the beginning of a hello
			t.Fatal(err)
		}
	}
	conn, r := dial(t, addr)
	ask(t, conn, r, "hello")
	if open, _ := s.Stats(); open != stalled+1 {
		t.Errorf("%d connections", open)
	}
	until(t, "without the stalled ones", func() bool { open, _ := s.Stats(); return open == 1 })
	ask(t, conn, r, "still there")
}

// The stop of a server sets no time limit to a connection during its hand-over.
func TestHandOverAtStop(t *testing.T) { forms(t, testHandOverAtStop) }

func testHandOverAtStop(t *testing.T, form int) {
	const clients = 60
	given, goOn := make(chan net.Conn, clients), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Add(clients)
	s, addr := serve(t, func(c *conns.Conn) conns.Session {
		return &lines{c: c, heir: func(conn net.Conn) { given <- conn }, before: func(string) { waiting.Done(); <-goOn }}
	}, &conns.Options{Loops: form})
	var all []*client
	for range clients {
		conn, _ := dial(t, addr)
		fmt.Fprint(conn, "wait\nleave\n") // both are read before the stop
		all = append(all, conn)
	}
	waiting.Wait()
	stopped := make(chan error, 1)
	for i := range clients {
		if i == clients/2 {
			go func() { stopped <- s.Shutdown(t.Context()) }()
		}
		goOn <- struct{}{}
		time.Sleep(100 * time.Microsecond) // so that some leave just then
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for _, conn := range all {
		fmt.Fprint(conn, "line\n")
	}
	for range clients {
		conn := <-given
		if _, err := io.ReadFull(conn, make([]byte, len("line\n"))); err != nil {
			t.Errorf("an heir reads: %v", err)
		}
		_ = conn.Close()
	}
}
