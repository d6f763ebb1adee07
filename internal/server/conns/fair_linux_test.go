package conns_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
)

// A turnCounter handles connections that send costly requests ("c") or others. Only the loop's
// goroutine uses it.
type turnCounter struct {
	turns   int // costly requests so far
	clients int // clients with a costly request so far
	costly  func(k *turnCounter)
	other   func(k *turnCounter)
}

type turnSession struct {
	*turnCounter
	known bool
}

func (g *turnSession) Serve(in, out []byte) (taken int, _ []byte) {
	if in[0] != 'c' {
		g.other(g.turnCounter)
		return len(in), append(out, in...)
	}
	if g.turns++; !g.known {
		g.known = true
		g.clients++
	}
	time.Sleep(time.Millisecond) // the cost
	g.costly(g.turnCounter)
	return 1, append(out, make([]byte, wordyReply*3)...)
}

func (*turnSession) MayIdle() bool     { return true }
func (*turnSession) HalfClosed([]byte) {}
func (*turnSession) Closed()           {}

func (k *turnCounter) handle(*conns.Conn) conns.Session { return &turnSession{turnCounter: k} }

const costlyClients = 50

// While a queue of connections has pipelines left to carry out, a new request waits for a round of
// the queue, not for all of it.
func TestQueueLetsNewRequestsPass(t *testing.T) {
	light := make(chan net.Conn, 1)
	asked, passed := 0, make(chan int, 1)
	k := &turnCounter{
		costly: func(k *turnCounter) {
			if asked == 0 && k.clients == costlyClients {
				asked = k.turns
				fmt.Fprint(<-light, "x")
			}
		},
		other: func(k *turnCounter) {
			if asked > 0 {
				passed <- k.turns - asked
			}
		},
	}
	_, addr := serve(t, k.handle, &conns.Options{Loops: 1})
	conn, r := dial(t, addr)
	ask(t, conn, r, "hello")
	light <- conn
	for range costlyClients {
		c, _ := dial(t, addr)
		if _, err := c.Write([]byte("cccccccccccccccccccc")); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-passed; n > 3 {
		t.Errorf("a request waited for %d costly requests of other clients", n)
	}
}

// A loop serves the clients whose last request was costly after the others.
func TestCostlyClientsComeLast(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	asked, passed := 0, make(chan int, 1)
	k := &turnCounter{
		costly: func(k *turnCounter) {
			if k.turns == costlyClients+1 { // the first one has another turn
				asked = k.turns
				close(held)
				<-hold
			}
		},
		other: func(k *turnCounter) {
			if asked > 0 {
				passed <- k.turns - asked
			}
		},
	}
	_, addr := serve(t, k.handle, &conns.Options{Loops: 1})
	light, r := dial(t, addr)
	ask(t, light, r, "hello")
	var costly []net.Conn
	for range costlyClients {
		c, r := dial(t, addr)
		fmt.Fprint(c, "c")
		if _, err := r.Discard(wordyReply * 3); err != nil {
			t.Fatal(err)
		}
		costly = append(costly, c)
	}
	fmt.Fprint(costly[0], "c")
	<-held
	for _, c := range costly[1:] {
		fmt.Fprint(c, "c")
	}
	fmt.Fprint(light, "x")
	close(hold)
	if n := <-passed; n > 3 {
		t.Errorf("a request waited for %d costly requests of other clients", n)
	}
}

// A loop reads little of a new connection at first: it soon knows which of many have large
// pipelines.
func TestFirstReadIsSmall(t *testing.T) {
	const pipeline, most = 32 << 10, 4 << 10 // bytes
	held, hold, sizes := make(chan struct{}), make(chan struct{}), make(chan int, pipeline)
	_, addr := serve(t, func(*conns.Conn) conns.Session {
		return &inputSession{func(in []byte) {
			if in[0] == 'h' {
				close(held)
				<-hold
				return
			}
			sizes <- len(in)
		}}
	}, &conns.Options{Loops: 1})
	first, _ := dial(t, addr)
	fmt.Fprint(first, "h")
	<-held
	c, _ := dial(t, addr)
	if _, err := c.Write(make([]byte, pipeline)); err != nil {
		t.Fatal(err)
	}
	close(hold)
	if n := <-sizes; n > most {
		t.Fatalf("%d bytes were read at first", n)
	}
	if n := <-sizes; n <= most {
		t.Errorf("%d bytes were read then", n)
	}
}

// An inputSession takes all input.
type inputSession struct{ serve func(in []byte) }

func (s *inputSession) Serve(in, out []byte) (taken int, _ []byte) {
	s.serve(in)
	return len(in), out
}

func (*inputSession) MayIdle() bool     { return true }
func (*inputSession) HalfClosed([]byte) {}
func (*inputSession) Closed()           {}
