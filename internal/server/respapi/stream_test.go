package respapi_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server/conns"
)

// Where the stock ends in the middle of a batch, each command still has its own answer,
// and no ID is lost.
func TestStockEndsMidway(t *testing.T) {
	f := serve(t, func(o *options) { o.segment.Wait = 10 * time.Millisecond })
	granted := false
	f.store.Plan(func(c drivertest.Call) (fault drivertest.Fault) {
		if c.Op == drivertest.OpAdvance {
			if granted {
				fault.Before = errors.New("connection refused at 192.0.2.1")
			}
			granted = true
		}
		return fault
	})
	c := f.dial(t)
	c.send(strings.Repeat(command("INCR", "order"), 120))
	for i := range 120 {
		want := fmt.Sprintf(":%d", i+1)
		if i >= 100 {
			want = "-TRYAGAIN "
		}
		if got := c.reply(); !strings.HasPrefix(got, want) || i < 100 && got != want || strings.Contains(got, "192.0.2.1") {
			t.Fatalf("reply %d: %q, want %q", i+1, got, want)
		}
	}
}

// Replies do not wait for a later command that waits.
func TestRepliesBeforeWait(t *testing.T) {
	f := serve(t, func(o *options) { o.segment.Wait, o.segment.CallTimeout = time.Hour, time.Hour })
	hold := make(chan struct{})
	f.store.Plan(drivertest.Only(drivertest.OpAdvance, drivertest.Fault{Hold: hold}))
	for _, waits := range []string{"INCR order", "INCRBY order 5", "LEAF.NEXT segment order COUNT 5"} {
		c := f.dial(t)
		c.send("ECHO before\r\n" + waits + "\r\n")
		if got := c.reply(); got != "before" {
			t.Errorf("%s: %q", waits, got)
		}
	}
	close(hold)
}

// Commands come in pieces of any size.
func TestTrickle(t *testing.T) {
	c := serve(t, nil).dial(t)
	for i, b := range []byte(command("INCR", "order") + "INCR order\r\n" + command("PING")) {
		c.send(string(b))
		if i%7 == 0 {
			time.Sleep(time.Millisecond) // not for an event: so that the pieces stay apart
		}
	}
	for _, want := range []string{":1", ":2", "+PONG"} {
		if got := c.reply(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A client that closes its side gets the answers to its commands.
func TestHalfClosed(t *testing.T) {
	c := serve(t, nil).dial(t)
	c.send("INCR order\r\nINCR order\r\n*2\r\n$4\r\nINCR")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.wantEnd(":1\r\n:2\r\n")
}

// After bytes that are not a command the server answers and closes the connection. It executes the
// commands before them, and not those after them.
func TestProtocolErrors(t *testing.T) {
	f := serve(t, nil)
	for input, want := range map[string]string{
		"*1\r\n$1073741824\r\n" + strings.Repeat("x", 100_000): "invalid bulk length",
		"*1\r\n$-1\r\n":             "invalid bulk length",
		"*2000000000\r\n":           "invalid multibulk length",
		"*1\r\n:1\r\n":              "expected '$', got ':'",
		strings.Repeat("x", 70_000): "too big inline request",
		"SET \"x\r\n":               "unbalanced quotes in request",
	} {
		c := f.dial(t)
		c.send("PING\r\n" + input + "\r\nPING\r\n")
		c.wantEnd("+PONG\r\n-ERR Protocol error: " + want + "\r\n")
		_ = c.Close()
	}
}

// The server does not execute a browser's input: a page could make it send commands.
func TestHTTP(t *testing.T) {
	f := serve(t, nil)
	for input, want := range map[string]string{
		"POST / HTTP/1.1\r\n\r\nINCR order\r\n":                   "",
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nINCR order\r\n": "-ERR wrong number of arguments for 'get' command\r\n",
	} {
		c := f.dial(t)
		c.send(input)
		c.wantEnd(want)
	}
}

// Many idle connections hold up no other; each is answered when it asks.
func TestIdleConnections(t *testing.T) {
	f := serve(t, nil)
	clients := make([]*client, 500)
	for i := range clients {
		clients[i] = f.dial(t)
	}
	c := f.dial(t)
	if got := c.do("INCR", "order"); got != ":1" {
		t.Error(got)
	}
	for _, c := range clients {
		if got := c.do("PING"); got != "+PONG" {
			t.Fatal(got)
		}
	}
}

// A connection does not remember the keys that it asked for.
func TestKeysAreNotKept(t *testing.T) {
	const clients, keys, most = 100, 256, 3 << 20 // bytes; 256 keys of 100 bytes are 40 KB
	f := serve(t, nil)
	before := inUse()
	for i := range clients {
		c := f.dial(t)
		for j := range keys {
			c.send(command("LEAF.NEXT", "uuid", fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat("x", 100))))
		}
		for range keys {
			if got := c.reply(); len(got) != 36 {
				t.Fatal(got)
			}
		}
	}
	if used := inUse() - before; used > most {
		t.Errorf("%d connections keep %d bytes", clients, used)
	}
}

// inUse returns how many bytes the program keeps.
func inUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The server makes replies when the client reads: together the unread ones stay within the budget,
// other clients get their IDs, and no reply is lost.
func TestUnreadBatches(t *testing.T) {
	const clients, batches, batch = 15, 10, "LEAF.NEXT uuid x COUNT 10000\r\n"
	const most = 8 << 20 // bytes; all replies are 65 MB
	f := serve(t, func(o *options) { o.conns.Budget = conns.NewBudget(1 << 20) })
	before := inUse()
	var lazy []*client
	for range clients {
		c := f.dial(t)
		if err := c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		c.send(strings.Repeat(batch, batches))
		lazy = append(lazy, c)
	}
	other := f.dial(t)
	for range 5 { // the loop serves the others meanwhile
		other.send(batch)
		if got := other.reply(); len(got) != len("[]")+10_000*37-1 {
			t.Fatalf("%.100s", got)
		}
	}
	if used := inUse() - before; used > most {
		t.Errorf("%d clients that do not read take %d bytes", clients, used)
	}
	for range batches {
		if got := lazy[0].reply(); len(got) != len("[]")+10_000*37-1 {
			t.Fatalf("%.100s", got)
		}
	}
}

// A long reply comes in pieces, in order with those before and after it, also where it waits for
// the store first.
func TestLongReplies(t *testing.T) {
	for _, loops := range []int{1, -1} {
		testLongReplies(t, serve(t, func(o *options) { o.conns.Loops = loops }))
	}
}

func testLongReplies(t *testing.T, f *fixture) {
	c := f.dial(t)
	c.send("PING\r\nLEAF.NEXT segment order COUNT 9000\r\nPING\r\nLEAF.NEXT uuid x COUNT 9000\r\nINCR order\r\nQUIT\r\n")
	if got := c.reply(); got != "+PONG" {
		t.Error(got)
	}
	if got := c.reply(); !strings.HasPrefix(got, "[1 2 3 ") || !strings.HasSuffix(got, " 8999 9000]") {
		t.Errorf("%.50s", got)
	}
	if got := c.reply(); got != "+PONG" {
		t.Error(got)
	}
	if got := c.reply(); strings.Count(got, " ") != 8999 {
		t.Errorf("%.50s", got)
	}
	if got := c.reply(); got != ":9001" {
		t.Error(got)
	}
	c.wantEnd("+OK\r\n")
}

// Many concurrent clients get distinct IDs.
func TestDistinct(t *testing.T) {
	f := serve(t, nil)
	var seen drivertest.IDs
	var wg sync.WaitGroup
	for range 8 {
		c, shard := f.dial(t), seen.Shard()
		wg.Go(func() {
			for range 50 {
				c.send(strings.Repeat(command("INCR", "order"), 40) + command("INCRBY", "order", "3"))
				for range 40 {
					shard.Add(c.number())
				}
				last := c.number()
				shard.Add(last-2, last-1, last)
			}
		})
	}
	wg.Wait()
	if err := seen.Check(); err != nil {
		t.Error(err)
	}
}

// number reads an integer.
func (c *client) number() (n int64) {
	reply := c.reply()
	if _, err := fmt.Sscanf(reply, ":%d", &n); err != nil {
		c.t.Errorf("%q is not an integer", reply)
	}
	return n
}

// An INCR allocates nothing, alone or in a row.
func TestAllocations(t *testing.T) {
	const enough = 1_000_000 // IDs: no call waits, which would allocate
	sessions := make(chan conns.Session, 2)
	f := serve(t, func(o *options) {
		o.step = enough
		o.wrap = func(handle conns.Handler) conns.Handler {
			return func(c *conns.Conn) conns.Session {
				s := handle(c)
				sessions <- s
				return s
			}
		}
	})
	if got := f.dial(t).do("INCR", "order"); got != ":1" { // the stock is there from now on
		t.Fatal(got)
	}
	<-sessions
	f.dial(t) // which asks for nothing itself
	served := <-sessions
	out := make([]byte, 0, 4096)
	for _, pipeline := range []int{1, 64} {
		ask := []byte(strings.Repeat(command("INCR", "order"), pipeline))
		if n := testing.AllocsPerRun(1000, func() {
			if taken, _ := served.Serve(ask, out); taken != len(ask) {
				t.Fatalf("%d bytes of %d were taken", taken, len(ask))
			}
		}); n > 0 {
			t.Errorf("%v allocations for %d INCR", n, pipeline)
		}
	}
	f.conns.Close() // the session is the server's again
}

// The largest commands are answered, and their memory is given back.
func TestLargeCommands(t *testing.T) {
	c := serve(t, nil).dial(t)
	text := strings.Repeat("x", 60_000)
	for range 3 {
		if got := c.do("ECHO", text); got != text {
			t.Fatalf("%d bytes came back", len(got))
		}
		if got := c.do("PING"); got != "+PONG" {
			t.Fatal(got)
		}
	}
	args := make([]string, 1024)
	for i := range args {
		args[i] = "x"
	}
	if got := c.do(args...); !strings.HasPrefix(got, "-ERR unknown command 'x'") {
		t.Error(got)
	}
	if _, err := io.WriteString(c.Conn, "QUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	c.wantEnd("+OK\r\n")
}
