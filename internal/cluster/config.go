package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/hint"
)

// A Config says where a member is and who its peers are.
type Config struct {
	Dir     string   // of the member
	Peers   []string // host:port of members to ask
	Address string   // host:port at which peers reach this member; only for a new one
	Listen  string   // host:port of the member's listener; default: its address
	TLS     TLS
	Logger  *slog.Logger // default: nothing is logged
	Quota   int64        // of the database, in bytes; default 2 GiB

	// NotAlone refuses the registry's clock while the cluster has one member: it would be the clock of
	// this machine, and a second machine with a cluster of its own would use the same worker IDs.
	NotAlone bool
}

// TLS names the PEM files of the connections between peers: who signs the certificates, and the
// certificate of this machine with its key. Set all of them, or leave all empty.
type TLS struct{ CA, Cert, Key string }

func (c Config) withDefaults() (Config, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Quota = cmp.Or(c.Quota, defaultQuota)
	if n := len(slices.DeleteFunc([]string{c.TLS.CA, c.TLS.Cert, c.TLS.Key}, func(s string) bool { return s == "" })); n != 0 && n != 3 {
		return c, fmt.Errorf("%w: peers need three files: the authority, the certificate and its key", leaf.ErrInvalid)
	}
	for _, addr := range append([]string{c.Address, c.Listen}, c.Peers...) {
		if addr == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(addr); err != nil || port == "" || strings.ContainsAny(host, "/@ ") {
			return c, fmt.Errorf("%w: %q is not HOST:PORT of a peer", leaf.ErrInvalid, addr)
		}
	}
	return c, nil
}

// checkTLS refuses a member that other machines reach without certificates.
func (c Config) checkTLS(addresses ...string) error {
	for _, addr := range addresses {
		if c.TLS.CA == "" && !IsLoopback(addr) {
			return fmt.Errorf("%w: other machines reach %s", hint.ErrPeerTLS, addr)
		}
	}
	return nil
}

// IsLoopback reports whether no other machine reaches an address, HOST:PORT.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (c Config) scheme() string {
	if c.TLS.CA != "" {
		return "https"
	}
	return "http"
}

// peerURL is how etcd writes the address of a peer.
func (c Config) peerURL(addr string) string { return c.scheme() + "://" + addr }

func (c Config) peerURLs(addr string) types.URLs {
	return types.URLs{url.URL{Scheme: c.scheme(), Host: addr}}
}

// info returns the files for etcd, which reads the certificate at each handshake.
func (t TLS) info() transport.TLSInfo {
	return transport.TLSInfo{CertFile: t.Cert, KeyFile: t.Key, TrustedCAFile: t.CA, ClientCertAuth: t.CA != "", SkipClientSANVerify: true}
}

// client returns the encryption of requests to peers, which reads the certificate at each handshake;
// nil without certificates.
func (t TLS) client() (*tls.Config, error) {
	if t.CA == "" {
		return nil, nil
	}
	authority, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", t.CA)
	}
	own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		return &cert, err
	}
	if _, err := own(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: own}, nil
}

// OwnAddress returns the one of peers that this machine has, by its interfaces; "" unless exactly one
// is.
func OwnAddress(ctx context.Context, peers []string) string {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	ours := func(ip net.IP) bool {
		return slices.ContainsFunc(interfaces, func(a net.Addr) bool {
			own, ok := a.(*net.IPNet)
			return ok && own.IP.Equal(ip)
		})
	}
	found := ""
	for _, peer := range peers {
		host, _, err := net.SplitHostPort(peer)
		if err != nil {
			continue
		}
		ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
		if err != nil || !slices.ContainsFunc(ips, ours) {
			continue
		}
		if found != "" {
			return ""
		}
		found = peer
	}
	return found
}

// Address returns the address of the member in a directory.
func Address(dir string) (string, error) {
	id, err := readIdentity(dir)
	return id.Address, err
}
