package main

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// slowness is how late a slow server's answers are.
const slowness = 500 * time.Millisecond

// A proxy forwards TCP connections to a server that moves from port to port.
type proxy struct {
	listener net.Listener
	calls    atomic.Int64 // of Advance; only without TLS

	mu     sync.Mutex
	target string
	mode   string
	conns  map[net.Conn]bool
}

func newProxy() (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, mode: "pass", conns: make(map[net.Conn]bool)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.listener.Close()
	p.cut()
}

func (p *proxy) lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *proxy) set(mode string) {
	p.mu.Lock()
	p.mode = mode
	p.mu.Unlock()
	if mode == "refuse" {
		p.cut()
	}
}

func (p *proxy) now() (target, mode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target, p.mode
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
	clear(p.conns)
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(p.conns, conn)
	}
}

func (p *proxy) serve(client net.Conn) {
	target, mode := p.now()
	if mode == "refuse" {
		client.Close()
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.Close()
		return
	}
	p.keep(client, server)
	defer p.forget(client, server)
	go p.forward(server, client, func(chunk []byte) string {
		p.calls.Add(int64(bytes.Count(chunk, []byte("/leaf.v1.LeafService/Advance "))))
		return "pass"
	})
	p.forward(client, server, func([]byte) string {
		_, mode := p.now()
		if mode == "slow" {
			time.Sleep(slowness)
		}
		return mode
	})
}

// forward copies from src to dst until one ends. After "lose" it ends the connection instead, after
// "silence" it drops the chunk.
func (p *proxy) forward(dst, src net.Conn, mode func([]byte) string) {
	defer p.forget(dst, src)
	for buf := make([]byte, 64<<10); ; {
		n, err := src.Read(buf)
		if n > 0 {
			switch mode(buf[:n]) {
			case "lose":
				return
			case "silence":
				continue
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
