package e2e

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Ten thousand idle connections cost little memory and hold up no other client; each is answered
// when it asks again.
func TestIdleConnections(t *testing.T) {
	const each, most = 5000, 4 << 10 // connections of each protocol, bytes of one
	s := serveWith(t, "LEAF_RESP=127.0.0.1:0")
	s.next(sampleTag)
	idle := []*idleClients{
		{addr: portAddress(t, s, "resp"), request: "INCR " + sampleTag + "\r\n", answer: ":"},
		{addr: strings.TrimPrefix(s.url, "http://"), request: "GET /api/segment/get/" + sampleTag + " HTTP/1.1\r\nHost: localhost\r\n\r\n", answer: "HTTP/1.1 200 OK\r\n"},
	}
	before := s.memory()
	for _, c := range idle {
		defer c.close()
		c.open(t, each)
	}
	if used := s.memory() - before; used > 2*each*most {
		t.Errorf("%d idle connections take %d bytes of memory", 2*each, used)
	}
	s.next(sampleTag)
	for _, c := range idle {
		c.ask(t)
	}
}

// memory returns how many bytes the server uses by its own metrics.
func (s *server) memory() (n int64) {
	s.t.Helper()
	text, err := get(s.url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "go_memstats_heap_inuse_bytes" || name == "go_memstats_stack_inuse_bytes" {
			size, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			n += int64(size)
		}
	}
	return n
}

// idleClients have a connection each, and ask now and then.
type idleClients struct {
	addr            string
	request, answer string // the beginning of the answer
	conns           []net.Conn
}

// open has so many clients connect and ask once.
func (c *idleClients) open(t *testing.T, n int) {
	t.Helper()
	c.conns = make([]net.Conn, n)
	c.each(t, func(i int) (err error) {
		if c.conns[i], err = net.Dial("tcp", c.addr); err != nil {
			return err
		}
		return c.askOne(c.conns[i])
	})
}

func (c *idleClients) ask(t *testing.T) {
	t.Helper()
	c.each(t, func(i int) error { return c.askOne(c.conns[i]) })
}

// each calls do for all clients, some at a time.
func (c *idleClients) each(t *testing.T, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(c.conns) && !t.Failed(); i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			}
		})
	}
	if workers.Wait(); t.Failed() {
		t.FailNow()
	}
}

func (c *idleClients) askOne(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, c.request); err != nil {
		return err
	}
	buf := make([]byte, 512) // holds any of these answers, which come in one piece
	n, err := conn.Read(buf)
	if err == nil && !strings.HasPrefix(string(buf[:n]), c.answer) {
		err = fmt.Errorf("answered %q", buf[:n])
	}
	return err
}

// close leaves no closed connection in the system's memory, where its port would stay taken.
func (c *idleClients) close() {
	for _, conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
}
