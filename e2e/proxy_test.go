package e2e

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy forwards TCP connections, and can do to them what networks do.
type proxy struct {
	addr   string
	target atomic.Pointer[string]
	mute   atomic.Bool  // the answers of the target are dropped, and the connections stay
	delay  atomic.Int64 // each chunk is passed on so late, in nanoseconds
	linger atomic.Int64 // so long after one side has closed the other one hears of it
	harmed atomic.Int64 // how often it did any of that: connections, and chunks

	mu    sync.Mutex
	down  bool
	links map[*link]bool // never nil
}

// A link is one connection of a client, and the one to the target that belongs to it.
type link struct {
	client, server net.Conn
	dead           atomic.Bool // the target has gone, and the client was not told
}

// startProxy starts a proxy to target, which passes on each chunk delay late.
func startProxy(t testing.TB, target string, delay time.Duration) *proxy {
	t.Helper()
	return startProxyAt(t, "127.0.0.1", target, delay)
}

// startProxyAt is startProxy at an address of this machine.
func startProxyAt(t testing.TB, host, target string, delay time.Duration) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: listener.Addr().String(), links: map[*link]bool{}}
	p.target.Store(&target)
	p.delay.Store(int64(delay))
	t.Cleanup(func() { listener.Close(); p.cut() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", *p.target.Load())
	if err != nil {
		client.Close()
		return
	}
	l := &link{client: client, server: server}
	if !p.keep(l) {
		l.close()
		return
	}
	go p.forward(l, client, server, &p.mute)
	p.forward(l, server, client, new(atomic.Bool))
}

// keep notes a link, unless the proxy is cut.
func (p *proxy) keep(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		p.harmed.Add(1)
	} else {
		p.links[l] = true
	}
	return !p.down
}

func (l *link) close() {
	l.client.Close()
	l.server.Close()
}

// cut ends all connections, and all later ones at once, until mend.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for l := range p.links {
		p.harmed.Add(1)
		l.close()
	}
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// halve breaks connections without telling the clients, like a power loss of the server's machine.
// New connections work.
func (p *proxy) halve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.harmed.Add(1)
		l.dead.Store(true)
		l.server.Close()
	}
}

// forward copies until either side closes, and then closes both. While mute is set it drops all
// bytes.
func (p *proxy) forward(l *link, dst, src net.Conn, mute *atomic.Bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		p.wait(&p.delay)
		switch dead := l.dead.Load(); {
		case dead && src == l.server:
			return // the other direction waits for the client to give up
		case err == nil && (dead || mute.Load()):
			p.harmed.Add(1)
			continue
		}
		if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	p.wait(&p.linger)
	p.mu.Lock()
	defer p.mu.Unlock()
	l.close()
	delete(p.links, l)
}

// wait delays; a delay above 0 counts as harm.
func (p *proxy) wait(delay *atomic.Int64) {
	if d := delay.Load(); d > 0 {
		time.Sleep(time.Duration(d))
		p.harmed.Add(1)
	}
}

// harm returns how often some proxies harmed connections.
func harm(proxies []*proxy) (n int64) {
	for _, p := range proxies {
		n += p.harmed.Load()
	}
	return n
}

// awaitHarm waits until the proxies have harmed more connections than before, at most for a time.
// Its error wraps errNoOccasion: a fault of unused connections does not count.
func awaitHarm(proxies []*proxy, before int64, most time.Duration) error {
	deadline := time.After(most)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for len(proxies) > 0 && harm(proxies) == before {
		select {
		case <-deadline:
			return fmt.Errorf("%w: the connections were not used", errNoOccasion)
		case <-poll.C:
		}
	}
	return nil
}
