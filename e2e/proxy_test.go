package e2e

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy forwards TCP connections. It may be cut, like a cable.
type proxy struct {
	addr string
	mute atomic.Bool // the answers of the target are dropped, and the connections stay

	mu    sync.Mutex
	down  bool
	conns map[io.Closer]bool // never nil
}

// startProxy starts a proxy to target, which passes on each chunk delay late.
func startProxy(t testing.TB, target string, delay time.Duration) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &proxy{addr: listener.Addr().String(), conns: map[io.Closer]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			if !p.keep(client, server) {
				client.Close()
				server.Close()
				continue
			}
			go p.forward(client, server, delay, &p.mute)
			go p.forward(server, client, delay, new(atomic.Bool))
		}
	}()
	return p
}

// keep notes connections, unless the proxy is cut.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.down
}

// cut ends all connections, and all later ones at once, until mend.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// forward copies until either side closes, and then closes both. What comes while mute is
// set is dropped.
func (p *proxy) forward(dst, src net.Conn, delay time.Duration, mute *atomic.Bool) {
	defer p.drop(dst, src)
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		time.Sleep(delay)
		if mute.Load() && err == nil {
			continue
		}
		if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}
