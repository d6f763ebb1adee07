package conns_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/testserver"
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

// A server says once that a handshake failed. A client that connects and says nothing is no fault.
func TestFailedHandshakes(t *testing.T) {
	var log testserver.Output
	s, addr := serve(t, newLines(nil), &conns.Options{Loops: encrypted, NeedsTLS: []byte("use TLS\n"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i, text := range []string{"", "hello\n", "hello\n"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, text)
		if text != "" {
			wantEnd(t, conn, "use TLS\n")
		}
		_ = conn.Close()
		good, r := dial(t, addr) // comes after it
		ask(t, good, r, "a")
		until(t, "without the connection", func() bool { open, _ := s.Stats(); return open == i+1 })
		if got := log.String(); strings.Count(got, "\n") != min(i, 1) || i > 0 && !strings.Contains(got, "a TLS handshake failed") {
			t.Errorf("client %d: the log: %s", i, got)
		}
	}
}

// An heir learns the state of the encryption, whether or not input was read earlier.
func TestHeirKnowsEncryption(t *testing.T) {
	given := make(chan net.Conn, 1)
	_, addr := serve(t, newLeaving(given), &conns.Options{Loops: encrypted})
	for _, rest := range []string{"", "rest"} {
		conn, _ := dial(t, addr)
		fmt.Fprint(conn, "leave\n"+rest)
		got := <-given
		if c, ok := got.(interface{ ConnectionState() tls.ConnectionState }); !ok || !c.ConnectionState().HandshakeComplete {
			t.Errorf("with %q left: a %T", rest, got)
		}
		if _, itself := got.(*tls.Conn); itself != (rest == "") { // HTTP/2 needs one
			t.Errorf("with %q left it is a %T", rest, got)
		}
		_ = got.Close()
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
