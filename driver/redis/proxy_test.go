package redis_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A proxy connects a client with a Redis.
type proxy struct {
	addr    string
	scripts atomic.Int64 // requests to run one
	lose    atomic.Int64 // n: the answer to the nth script from now is lost, with its connection

	upstream atomic.Pointer[string] // of new connections
	conns    atomic.Int64           // ever made
	open     atomic.Int64
	silent   atomic.Int64 // how many of the first connections pass nothing on
}

func newProxy(t testing.TB, upstream string) *proxy {
	t.Helper()
	p := &proxy{}
	p.upstream.Store(&upstream)
	p.addr = testserver.Proxy(t, p.serve)
	return p
}

func (p *proxy) serve(client net.Conn) {
	p.open.Add(1)
	defer p.open.Add(-1)
	number := p.conns.Add(1)
	server, err := net.Dial("tcp", *p.upstream.Load())
	if err != nil {
		return
	}
	defer server.Close()
	var work sync.WaitGroup
	defer work.Wait()
	defer client.Close()
	var lose atomic.Bool
	work.Go(func() { defer server.Close(); p.up(client, server, number, &lose) })
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil || lose.Load() {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// up passes requests on. It takes each read for one request.
func (p *proxy) up(client, server net.Conn, number int64, lose *atomic.Bool) {
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if number <= p.silent.Load() {
			continue
		}
		if bytes.Contains(buf[:n], []byte("\r\nevalsha\r\n")) {
			p.scripts.Add(1)
			if p.lose.Add(-1) == 0 {
				lose.Store(true)
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
