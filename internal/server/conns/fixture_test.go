package conns_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/testserver"
)

// timeout bounds the wait of a test.
const timeout = time.Minute

// A lines is a protocol with a line as a request and the same line as the answer. For each line it
// calls before, if set, which may wait.
type lines struct {
	c      *conns.Conn
	before func(line string)
	heir   func(net.Conn) // takes connections that leave
}

func newLines(before func(line string)) conns.Handler {
	return func(c *conns.Conn) conns.Session { return &lines{c: c, before: before} }
}

// newLeaving is newLines with connections that leave for given.
func newLeaving(given chan<- net.Conn) conns.Handler {
	return func(c *conns.Conn) conns.Session { return &lines{c: c, heir: func(c net.Conn) { given <- c }} }
}

func (s *lines) Serve(in, out []byte) (taken int, _ []byte) {
	for {
		line, _, ok := bytes.Cut(in[taken:], []byte("\n"))
		if !ok {
			return taken, out
		}
		taken += len(line) + 1
		switch {
		case string(line) == "quit":
			s.c.End()
			return taken, out
		case string(line) == "panic":
			panic("a fault")
		case string(line) == "leave":
			s.c.HandOver(s.heir)
			return taken, out
		case s.before == nil:
			out = append(append(out, line...), '\n')
			continue
		}
		text := string(line)
		s.c.Later(func(_ context.Context, out []byte) []byte {
			s.before(text)
			return append(append(out, text...), '\n')
		})
		return taken, out
	}
}

func (s *lines) MayIdle() bool { return true }
func (s *lines) Closed()       {}

func (s *lines) HalfClosed(rest []byte) {
	if string(rest) == "more" {
		s.c.HandOver(s.heir)
	}
}

// encrypted is the Loops of a server with TLS.
const encrypted = -2

// forms runs a test with each form of serving connections.
func forms(t *testing.T, test func(t *testing.T, form int)) {
	for name, form := range map[string]int{"loop": 1, "goroutines": -1, "TLS": encrypted} {
		t.Run(name, func(t *testing.T) { test(t, form) })
	}
}

// secret are the addresses of servers with TLS.
var secret sync.Map

// serve starts a server that ends with the test and returns its address.
func serve(t *testing.T, handle conns.Handler, opts *conns.Options) (*conns.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if opts.Loops == encrypted {
		pair, err := tls.LoadX509KeyPair(testserver.Certificate(t))
		if err != nil {
			t.Fatal(err)
		}
		opts.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		secret.Store(l.Addr().String(), true)
		t.Cleanup(func() { secret.Delete(l.Addr().String()) }) // a later server without TLS may get the port
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := conns.New(ctx, handle, opts)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s, l.Addr().String()
}

// A client is the test's side of a connection.
type client struct {
	net.Conn // with TLS or without it
	tcp      *endNoter
}

// An endNoter notes the end of a connection.
type endNoter struct {
	*net.TCPConn
	ended atomic.Bool
}

func (c *endNoter) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if err == io.EOF {
		c.ended.Store(true)
	}
	return n, err
}

// Read fails if a connection with TLS ends without the server's word, which package tls overlooks.
func (c *client) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if _, ok := c.Conn.(*tls.Conn); ok && err == io.EOF && c.tcp.ended.Load() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *client) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// SetLinger says how the connection is closed.
func (c *client) SetLinger(seconds int) error { return c.tcp.SetLinger(seconds) }

// reset closes the connection without a word.
func (c *client) reset() error { return cmp.Or(c.tcp.SetLinger(0), c.tcp.Close()) }

func dial(t *testing.T, addr string) (*client, *bufio.Reader) {
	t.Helper()
	return dialFrom(t, "127.0.0.1", addr)
}

// dialFrom dials from an address of this machine.
func dialFrom(t *testing.T, from, addr string) (*client, *bufio.Reader) {
	t.Helper()
	c, err := connect(from, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.tcp.Close() })
	return c, bufio.NewReader(c)
}

func connect(from, addr string) (*client, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp := &endNoter{TCPConn: conn.(*net.TCPConn)}
	c := &client{tcp, tcp}
	if _, ok := secret.Load(addr); ok {
		c.Conn = tls.Client(tcp, &tls.Config{InsecureSkipVerify: true})
	}
	return c, conn.SetDeadline(time.Now().Add(timeout))
}

func ask(t *testing.T, conn io.Writer, r *bufio.Reader, line string) {
	t.Helper()
	fmt.Fprintln(conn, line)
	if got, err := r.ReadString('\n'); got != line+"\n" {
		t.Fatalf("%q: answered %q, %v", line, got, err)
	}
}

// wantEnd checks that the server sends last, and then ends the connection in good order.
func wantEnd(t *testing.T, r io.Reader, last string) {
	t.Helper()
	if got, err := io.ReadAll(r); err != nil || string(got) != last {
		t.Errorf("the connection ended with %q, %v; want %q", got, err, last)
	}
}

// wantRefused checks that a connection is not served. A client without TLS learns why.
func wantRefused(t *testing.T, r io.Reader, form int) {
	t.Helper()
	if form != encrypted {
		wantEnd(t, r, "full\n")
	} else if got, err := io.ReadAll(r); err == nil {
		t.Errorf("the connection beyond the limit got %q", got)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(start) > timeout {
			t.Fatalf("not %s within %v", what, timeout)
		}
	}
}
