package nats_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/leaf-id/leaf/driver/drivertest"
	leafnats "github.com/leaf-id/leaf/driver/nats"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A proxy connects a client with NATS.
type proxy struct {
	addr, upstream string

	writes   atomic.Int64 // publishes that compare
	lose     atomic.Bool  // the answer to the next one, with its connection
	odd      atomic.Bool  // send an error that the client does not know with the next message
	leader   atomic.Int64 // reads that the leader answers
	replicas atomic.Int64 // reads that any replica answers
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	p := &proxy{upstream: upstream}
	p.addr = testserver.Proxy(t, p.serve)
	return p
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	var losing atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		defer server.Close()
		pass(client, server, func(msg []byte) bool {
			switch {
			case bytes.Contains(msg, []byte("Nats-Expected-Last-Subject-Sequence")):
				p.writes.Add(1)
				losing.Store(p.lose.CompareAndSwap(true, false))
			case bytes.Contains(msg, []byte("$JS.API.DIRECT.GET")):
				p.replicas.Add(1)
			case bytes.Contains(msg, []byte("$JS.API.STREAM.MSG.GET")):
				p.leader.Add(1)
			}
			return true
		})
	})
	pass(server, client, func(msg []byte) bool {
		if p.odd.CompareAndSwap(true, false) {
			_, _ = client.Write([]byte("-ERR 'Odd'\r\n"))
		}
		return !losing.Load() || !bytes.HasPrefix(msg, []byte("MSG")) && !bytes.HasPrefix(msg, []byte("HMSG"))
	})
	client.Close()
	work.Wait()
}

// pass passes messages on until ok returns false.
func pass(from io.Reader, to io.Writer, ok func([]byte) bool) {
	r := bufio.NewReader(from)
	for {
		msg, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		if f := strings.Fields(string(msg)); len(f) > 1 && slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, f[0]) {
			size, _ := strconv.Atoi(f[len(f)-1])
			payload := make([]byte, size+2)
			if _, err := io.ReadFull(r, payload); err != nil {
				return
			}
			msg = append(msg, payload...)
		}
		if !ok(msg) {
			return
		}
		if _, err := to.Write(msg); err != nil {
			return
		}
	}
}

func TestSentOnce(t *testing.T) {
	testserver.Long(t)
	t.Parallel() // it mostly waits for answers that do not come
	o := newOptions()
	direct := create(t, shared.URL(), o, order)
	p := newProxy(t, shared.Addr())
	db := open(t, "nats://"+p.addr, o)
	drivertest.TestSentOnce(t, drivertest.Lossy{Store: db.Store(), Registry: db.Registry(), Direct: direct.Store(), Tag: order,
		Lose: func() { p.lose.Store(true) }, Writes: p.writes.Load})
}

func TestReadsAreTheLeaders(t *testing.T) {
	o := newOptions()
	create(t, shared.URL(), o, order)
	p := newProxy(t, shared.Addr())
	db := open(t, "nats://"+p.addr, o)
	drivertest.TestReads(t, db.Store(), db.Registry(), order.Name, func() {})
	if p.leader.Load() == 0 || p.replicas.Load() > 0 {
		t.Errorf("the leader was asked %d times, any replica %d times", p.leader.Load(), p.replicas.Load())
	}
}

// A connection that buffers writes is refused; another one is used, and stays open.
func TestConnectionGiven(t *testing.T) {
	o := newOptions()
	create(t, shared.URL(), o, order)
	for size, want := range map[int]bool{-1: true, 1 << 20: false} {
		conn, err := nats.Connect(shared.URL(), nats.ReconnectBufSize(size))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		db, err := leafnats.New(conn, o)
		if (err == nil) != want {
			t.Errorf("a buffer of %d: got error %v", size, err)
		}
		if err != nil {
			continue
		}
		if _, err := db.Store().Advance(t.Context(), order.Name, 1); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil || conn.IsClosed() {
			t.Errorf("after Close: %v; the connection is closed: %v", err, conn.IsClosed())
		}
	}
}
