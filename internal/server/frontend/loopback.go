package frontend

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/leaf-id/leaf/internal/server/access"
)

// CheckHost reports why the server must not answer r: only this machine reaches the
// server, and r names a host that a name server decides about. A browser lets a page read
// only what its own host answers, but the owner of that host's name can make it point here.
func (o *Options) CheckHost(r *http.Request) error {
	if o.OnLoopback() && !local(r.Host) {
		return fmt.Errorf("%w: the request is for host %q: call this server as localhost or by its IP address", access.ErrForbidden, r.Host)
	}
	return nil
}

// CheckPage is [Options.CheckHost] for a browser's request for IDs. A server with tokens accepts
// every host, because it issues nothing without a valid token. The presence of an Authorization
// header proves nothing: a page may add one to requests for its own host.
func (o *Options) CheckPage(r *http.Request) error {
	if o.Access.Tokens() > 0 {
		return nil
	}
	return o.CheckHost(r)
}

// OnLoopback reports whether only this machine reaches the server.
func (o *Options) OnLoopback() bool { return IsLoopback(o.Listen) }

// IsLoopback reports whether only this machine reaches addr.
func IsLoopback(addr net.Addr) bool {
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
