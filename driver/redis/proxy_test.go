package redis_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A proxy stands between a client and a Redis.
type proxy struct {
	addr    string
	scripts atomic.Int64 // requests to run one
	lose    atomic.Int64 // n: the answer to the nth script from now is lost, with its connection
}

func newProxy(t testing.TB, upstream string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: listener.Addr().String()}
	var work sync.WaitGroup
	ended := make(chan struct{})
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.serve(conn, upstream, ended) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		close(ended)
		work.Wait()
	})
	return p
}

func (p *proxy) serve(client net.Conn, upstream string, ended <-chan struct{}) {
	defer client.Close()
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer server.Close()
	var work sync.WaitGroup
	defer work.Wait()
	done := make(chan struct{})
	defer close(done)
	work.Go(func() {
		select {
		case <-ended:
		case <-done:
		}
		client.Close()
		server.Close()
	})
	var lose atomic.Bool
	work.Go(func() { defer server.Close(); p.up(client, server, &lose) })
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

// up passes requests on, each of which is taken to arrive in one piece.
func (p *proxy) up(client, server net.Conn, lose *atomic.Bool) {
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
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
