// Package leafconn speaks to Leaf servers for package client and driver/relay. It chooses the
// server, moves to another one, and interprets the answers.
package leafconn

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
)

// Options are the optional settings of a [Conn]; nil means all defaults.
type Options struct {
	// Token returns the token for the servers; nil: no token.
	Token func() (string, error)

	// TLS is for servers whose URL begins with https; nil: the defaults of crypto/tls.
	TLS *tls.Config

	// Hedge is the time after which a call also asks a second server, where that is harmless;
	// default 100 ms, negative: never.
	Hedge time.Duration

	// CallTimeout bounds each call to a server; 0: the caller's context alone does.
	CallTimeout time.Duration

	// Observe receives each call to a server; nil: nothing does.
	Observe func(Call)

	// Name is this process's name in the routes of calls if it is a server itself: see package
	// hops. Empty: it is a client.
	Name string
}

// A Call is one call to a server, as it ended.
type Call struct {
	Server    string // host:port
	Procedure string // such as Advance
	Took      time.Duration
	Err       error      // nil: it succeeded
	Range     leaf.Range // of a successful Advance
}

const (
	defaultHedge  = 100 * time.Millisecond
	firstBackoff  = 100 * time.Millisecond
	maxBackoff    = 5 * time.Second
	dialTimeout   = 5 * time.Second
	idlePerServer = 32 // connections
)

// A Conn is a connection to one Leaf server, or to several with one store. Its methods are safe for
// concurrent use.
type Conn struct {
	opts    Options
	servers []*server
	http    *http.Client
	active  atomic.Int64 // the server that answered last, and knew the tag
	closed  atomic.Bool
	latest  sync.Map               // tag → version of its latest grant
	store   atomic.Pointer[string] // identity of the servers' store; nil: not known yet
}

// A server is one of them.
type server struct {
	host    string
	ids     leafv1connect.LeafServiceClient
	admin   leafv1connect.AdminServiceClient
	workers leafv1connect.WorkerServiceClient
	route   atomic.Pointer[[]string]
	proven  atomic.Bool // its latest answer with an identity had that of the known store

	fails   atomic.Int64 // in a row
	retryAt atomic.Int64 // Unix nanoseconds; until then calls ask it last
}

// Open returns a Conn to servers with these URLs, such as http://host:8080. It connects later.
func Open(urls []string, o *Options) (*Conn, error) {
	c := &Conn{}
	if o != nil {
		c.opts = *o
	}
	c.opts.Hedge = cmp.Or(c.opts.Hedge, defaultHedge)
	c.http = &http.Client{Transport: whole{c.transport()}}
	for _, base := range urls {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
			return nil, fmt.Errorf("%w: a server is http://host:port or https://host:port", leaf.ErrInvalid)
		}
		s := &server{host: u.Host}
		opts := []connect.ClientOption{connect.WithInterceptors(connect.UnaryInterceptorFunc(c.intercept(s)))}
		base = u.Scheme + "://" + u.Host
		s.ids = leafv1connect.NewLeafServiceClient(c.http, base, opts...)
		s.admin = leafv1connect.NewAdminServiceClient(c.http, base, opts...)
		s.workers = leafv1connect.NewWorkerServiceClient(c.http, base, opts...)
		c.servers = append(c.servers, s)
	}
	if len(c.servers) == 0 {
		return nil, fmt.Errorf("%w: no server is named", leaf.ErrInvalid)
	}
	c.active.Store(rand.Int64N(int64(len(c.servers)))) // so that not all programs begin with the first
	return c, nil
}

func (c *Conn) transport() *http.Transport {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     c.opts.TLS,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: idlePerServer,
		IdleConnTimeout:     time.Minute, // less than a server's
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: dialTimeout, PingTimeout: dialTimeout},
	}
	return t
}

// Close ends the connections. Later calls fail with [leaf.ErrClosed].
func (c *Conn) Close() error {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
	return nil
}

// order returns the servers in the order of asking: the one with the latest answer first, those
// with a recent failure last.
func (c *Conn) order() []*server {
	n := len(c.servers)
	all, failing := make([]*server, 0, n), make([]*server, 0, n)
	now := time.Now().UnixNano()
	for i := range n {
		s := c.servers[(int(c.active.Load())+i)%n]
		if s.retryAt.Load() > now {
			failing = append(failing, s)
		} else {
			all = append(all, s)
		}
	}
	return append(all, failing...)
}

// answered takes up how a call of s ended.
func (c *Conn) answered(s *server, err error) {
	switch judge(err) {
	case healthy:
		s.fails.Store(0)
		s.retryAt.Store(0)
		c.active.Store(int64(slices.Index(c.servers, s)))
	case ignorant:
		s.fails.Store(0)
		s.retryAt.Store(0)
	case faulty:
		pause := min(maxBackoff, firstBackoff<<min(s.fails.Add(1)-1, 10))
		s.retryAt.Store(time.Now().Add(pause/2 + rand.N(pause/2)).UnixNano())
	}
}
