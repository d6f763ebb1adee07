// Package loopback keeps what a server tells the machine it runs on from the pages of
// other web sites. A browser lets a page read only what its own host answers, but
// whoever owns that host's name can make it point here.
package loopback

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Check reports why r must not be answered by a server that listens on listen: that
// address is one of this machine only, and r names a host that a name server decides
// about.
func Check(listen net.Addr, r *http.Request) error {
	if Is(listen) && !local(r.Host) {
		return fmt.Errorf("the request is for host %q: call this server as localhost or by its IP address", r.Host)
	}
	return nil
}

// Is reports whether only this machine reaches addr.
func Is(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// local reports whether a Host header names a host that no name server decides about.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}
