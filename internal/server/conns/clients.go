package conns

import (
	"net"
	"net/netip"
	"sync"
)

// Clients counts connections by client: by the IPv4 address, or the /64 of the IPv6 address, which
// one client usually owns as a whole. The zero value is ready for use, by several goroutines.
type Clients struct {
	mu   sync.Mutex
	open map[netip.Addr]int
}

// Add counts a connection from addr, and returns how many its client has now.
func (c *Clients) Add(addr net.Addr) int {
	client := clientOf(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[netip.Addr]int)
	}
	c.open[client]++
	return c.open[client]
}

// Remove takes back an Add.
func (c *Clients) Remove(addr net.Addr) {
	client := clientOf(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[client]--; c.open[client] == 0 {
		delete(c.open, client)
	}
}

// clientOf returns the key of the client at addr; all without an IP address share one key.
func clientOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if prefix, err := ip.Prefix(64); err == nil && ip.Is6() {
		return prefix.Addr()
	}
	return ip
}
