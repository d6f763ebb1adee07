package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
)

// DefaultPrefix is the default of [Options].Prefix.
const DefaultPrefix = "/leaf"

const defaultPort = "2379"

// Options are the optional settings of [Open] and [New]; nil means all defaults.
type Options struct {
	// Prefix is what all keys begin with, followed by a slash. Default [DefaultPrefix].
	Prefix string

	// Username and Password belong to a user of etcd; empty: no user. Neither is ever logged. For
	// [Open].
	Username, Password string

	// TLS is the encryption of all connections; nil: no encryption. With [New] only the registry's
	// clock uses it, because the client has its own.
	TLS *tls.Config

	// HTTP holds host:port of each member's HTTP server, if etcd keeps that apart
	// (--listen-client-http-urls). Default: the endpoints. Only the clock of the registry uses it.
	HTTP []string

	// Clock replaces the members' HTTP servers as the registry's clock. The zero time means that the
	// registry has no clock of its own.
	Clock func(context.Context) (time.Time, error)

	// Logger gets a line when a member is given up for a new reason, and an error when the
	// revision goes back. Default: nothing is logged.
	Logger *slog.Logger
}

// Open returns the store and the registry in the etcd with these endpoints, host:port each. It
// connects at the first call, which reports the problems. The error wraps leaf.ErrInvalid if an
// argument is malformed.
func Open(endpoints []string, opts *Options) (*kv.DB, error) {
	o := opts.withDefaults()
	urls, err := o.urls(endpoints)
	if err != nil {
		return nil, fmt.Errorf("open etcd: %w", err)
	}
	first := rand.IntN(len(urls))
	etcd, err := connect(urls[first], o)
	if err != nil {
		return nil, fmt.Errorf("open etcd: %w", err)
	}
	b, err := newBackend(etcd, urls, o)
	if err != nil {
		_ = etcd.Close() // it sent nothing
		return nil, fmt.Errorf("open etcd: %w", err)
	}
	b.client.turns = true
	b.client.current.Store(int64(first))
	return kv.New(b, nil), nil
}

// New returns the store and the registry in the etcd of a client, which [kv.DB.Close]
// leaves open. A client without endpoints is that of an etcd in this process, and needs
// [Options].Clock. What becomes of a member that fails is the client's work. The client should be
// made with MaxUnaryRetries 1. Otherwise it may send a write again whose answer was
// lost: that does no harm, because each write compares the revision that it replaces, but a
// write that succeeded is then reported as a conflict.
func New(client *clientv3.Client, opts *Options) (*kv.DB, error) {
	o := opts.withDefaults()
	urls := client.Endpoints()
	for i, endpoint := range urls {
		if !strings.Contains(endpoint, "://") { // the client library takes both forms
			urls[i] = o.scheme() + endpoint
		}
	}
	if len(urls) == 0 {
		urls = []string{"this process"}
	}
	b, err := newBackend(client, urls, o)
	if err != nil {
		return nil, fmt.Errorf("open etcd: %w", err)
	}
	return kv.New(b, nil), nil
}

func newBackend(etcd *clientv3.Client, urls []string, o Options) (*backend, error) {
	switch {
	case !utf8.ValidString(o.Prefix) || strings.ContainsFunc(o.Prefix, unicode.IsControl):
		return nil, fmt.Errorf("%w: prefix %q is not valid text", leaf.ErrInvalid, o.Prefix)
	case (o.Username == "") != (o.Password == ""):
		return nil, fmt.Errorf("%w: a user of etcd needs a name and a password", leaf.ErrInvalid)
	}
	web := urls
	if len(o.HTTP) > 0 {
		var err error
		if web, err = o.urls(o.HTTP); err != nil {
			return nil, err
		}
	}
	return &backend{client: newClient(etcd, urls, o), prefix: o.Prefix + "/", clock: newClock(web, o.TLS), now: o.Clock}, nil
}

// withDefaults returns a copy of o with its defaults.
func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Prefix = strings.TrimRight(d.Prefix, "/"); d.Prefix == "" {
		d.Prefix = DefaultPrefix
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// urls returns the URLs of addresses, host:port or host each.
func (o Options) urls(addresses []string) ([]string, error) {
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no etcd endpoint named", leaf.ErrInvalid)
	}
	urls := make([]string, len(addresses))
	for i, addr := range addresses {
		full := addr
		if !strings.Contains(addr, ":") {
			full = net.JoinHostPort(addr, defaultPort)
		}
		host, port, err := net.SplitHostPort(full)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" || strings.ContainsAny(host, " /@") {
			return nil, fmt.Errorf("%w: etcd endpoint %q: write host:port", leaf.ErrInvalid, addr)
		}
		urls[i] = o.scheme() + full
	}
	return urls, nil
}

func (o Options) scheme() string {
	if o.TLS != nil {
		return "https://"
	}
	return "http://"
}
