package conns_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/leaf-id/leaf/internal/server/conns"
)

// A client is an IPv4 address, however it is written, or the /64 of an IPv6 address.
func TestClients(t *testing.T) {
	var c conns.Clients
	for _, tt := range []struct {
		ip   string
		want int
	}{
		{"192.0.2.1", 1}, {"::ffff:192.0.2.1", 2}, {"192.0.2.2", 1},
		{"2001:db8::1", 1}, {"2001:db8::2", 2}, {"2001:db8:0:1::1", 1}, {"fe80::1%eth0", 1}, {"fe80::2%eth1", 2},
	} {
		if got := c.Add(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(tt.ip), 80))); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.ip, got, tt.want)
		}
	}
	c.Remove(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	if got := c.Add(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); got != 2 {
		t.Errorf("after one left: %d", got)
	}
	c.Add(nil)
	if got := c.Add(&net.UnixAddr{}); got != 2 {
		t.Errorf("without an address: %d", got)
	}
}
