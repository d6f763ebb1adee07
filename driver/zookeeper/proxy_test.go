package zookeeper_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A proxy connects a client with a server of ZooKeeper.
type proxy struct {
	addr     string
	upstream string

	writes   atomic.Int64 // requests that change something
	dials    atomic.Int64
	loseNext atomic.Bool  // the answer to the next write is lost, with its connection
	refuse   atomic.Bool  // new connections are closed at once
	synced   atomic.Bool  // after the first sync
	unsynced atomic.Int64 // reads of data or children before any sync
	largest  atomic.Int64 // answer, in bytes

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newProxy(t testing.TB, upstream string) *proxy {
	t.Helper()
	p := &proxy{upstream: upstream, conns: map[net.Conn]bool{}}
	p.addr = testserver.Proxy(t, p.serve)
	return p
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) serve(client net.Conn) {
	p.dials.Add(1)
	if p.refuse.Load() {
		return
	}
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	var lose atomic.Bool
	var work sync.WaitGroup
	work.Go(func() { defer server.Close(); p.up(client, server, &lose) })
	defer work.Wait()
	defer client.Close()
	for {
		frame, err := readFrame(server)
		if err != nil || lose.Load() && int32(binary.BigEndian.Uint32(frame[4:])) > 0 {
			return
		}
		p.largest.Store(max(p.largest.Load(), int64(len(frame)))) // connections of one test: nearly enough
		if _, err := client.Write(frame); err != nil {
			return
		}
	}
}

// up passes requests on.
func (p *proxy) up(client, server net.Conn, lose *atomic.Bool) {
	for first := true; ; first = false {
		frame, err := readFrame(client)
		if err != nil {
			return
		}
		if op := opcode(frame); !first {
			switch {
			case op == opSync:
				p.synced.Store(true)
			case (op == opGetData || op == opGetChildren) && !p.synced.Load():
				p.unsynced.Add(1)
			}
		}
		if !first && isWrite(frame) {
			p.writes.Add(1)
			if p.loseNext.CompareAndSwap(true, false) {
				lose.Store(true)
			}
		}
		if _, err := server.Write(frame); err != nil {
			return
		}
	}
}

const (
	opCreate      = 1
	opGetData     = 4
	opSetData     = 5
	opSync        = 9
	opGetChildren = 12
	opMulti       = 14
)

func opcode(frame []byte) uint32 {
	if len(frame) < 12 {
		return 0
	}
	return binary.BigEndian.Uint32(frame[8:])
}

func isWrite(frame []byte) bool {
	op := opcode(frame)
	return op == opCreate || op == opSetData || op == opMulti
}

// readFrame reads a packet with its length.
func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > 1<<24 {
		return nil, errors.New("no packet")
	}
	frame := make([]byte, 4+n)
	copy(frame, size[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
