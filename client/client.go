package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/segment"
)

// ErrDenied is wrapped where the servers do not allow a call: the token is missing, expired,
// or lacks the right.
var ErrDenied = leafconn.ErrDenied

// Options are the optional settings of [New]; nil means all defaults, as does the zero value
// of a field.
type Options struct {
	// Token authenticates to the servers; it may be in the URL instead, or in the file TokenFile,
	// which the caller may replace at any time.
	Token, TokenFile string

	// TLS is for https URLs; nil: the defaults of crypto/tls.
	TLS *tls.Config

	// OutageBudget is the time whose use the stock of a tag covers; default 10 minutes. In
	// steady use, callers do not notice that the servers are gone for this long.
	OutageBudget time.Duration

	// MaxStock is the most IDs of a tag in memory, so the most that a crash may cost; default
	// 10,000,000. It wins over OutageBudget. Only the first range of a tag, of the tag's step, may
	// exceed it.
	MaxStock int64

	// Wait is how long a call waits for a server when the stock is used up; default 1 s.
	Wait time.Duration

	// CallTimeout bounds each call to a server; default 5 s. A call that asks one server at a time, as
	// for a tag with strict order, asks the next one after 2 s.
	CallTimeout time.Duration

	// Hedge is the time after which a call also asks a second server; default 100 ms, negative:
	// never.
	Hedge time.Duration

	// OnCall observes each finished call to a server, for metrics. It must be fast, and safe for
	// concurrent use. [Client.Stats] has the figures of each tag.
	OnCall func(Call)

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger
}

// A Call is one call to a server.
type Call struct {
	Server    string // host:port
	Procedure string // such as Advance
	Took      time.Duration
	Err       error      // nil: it succeeded
	Range     leaf.Range // the IDs that a successful Advance added to the program's stock
}

// A Client takes IDs from servers.
type Client struct {
	conn    *leafconn.Conn
	set     *segment.Set
	closing sync.Mutex // a second Close must not end the connections before IDs were given back
}

// New returns a client of the servers of a URL: http://h1:8080,h2:8080 or https://…, possibly with
// a token as in https://TOKEN@h1:8443; leaf: and leafs: mean the same. It connects at the first
// request for an ID. The error wraps [leaf.ErrInvalid].
func New(url string, o *Options) (*Client, error) {
	if o == nil {
		o = new(Options)
	}
	servers, token, err := parse(url)
	if err == nil {
		err = o.check(token)
	}
	if err != nil {
		return nil, fmt.Errorf("leaf client: %w", err)
	}
	timeout := cmp.Or(o.CallTimeout, segment.DefaultCallTimeout)
	opts := &leafconn.Options{TLS: o.TLS, Hedge: o.Hedge, CallTimeout: timeout}
	switch token = cmp.Or(o.Token, token); {
	case o.TokenFile != "":
		opts.Token = leafconn.TokenFile(o.TokenFile)
	case token != "":
		opts.Token = leafconn.FixedToken(token)
	}
	if o.OnCall != nil {
		opts.Observe = func(c leafconn.Call) { o.OnCall(Call(c)) }
	}
	conn, err := leafconn.Open(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("leaf client: %w", err)
	}
	return &Client{conn: conn, set: segment.NewSet(&store{Store: leafconn.Store{Conn: conn}}, &segment.SetOptions{Options: segment.Options{
		OutageBudget: o.OutageBudget, MaxStock: o.MaxStock, Wait: o.Wait, CallTimeout: timeout * time.Duration(len(servers)), Logger: o.Logger,
	}})}, nil
}

// check reports options that cannot be meant; token is that of the URL.
func (o *Options) check(token string) error {
	given := 0
	for _, t := range []string{token, o.Token, o.TokenFile} {
		if t != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return fmt.Errorf("%w: a token is given twice: in the URL, as Token or by TokenFile", leaf.ErrInvalid)
	case o.OutageBudget < 0 || o.MaxStock < 0 || o.Wait < 0 || o.CallTimeout < 0:
		return fmt.Errorf("%w: OutageBudget, MaxStock, Wait and CallTimeout must not be negative", leaf.ErrInvalid)
	}
	return nil
}

// parse takes a URL of several servers apart. No error holds the token.
func parse(text string) (servers []string, token string, err error) {
	scheme, rest, ok := strings.Cut(text, "://")
	schemes := map[string]string{"http": "http", "https": "https", "leaf": "http", "leafs": "https"}
	scheme = schemes[strings.ToLower(scheme)]
	if !ok || scheme == "" {
		return nil, "", fmt.Errorf("%w: the URL does not begin with http:// or https://", leaf.ErrInvalid)
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if token, err = url.PathUnescape(rest[:at]); err != nil || strings.Contains(token, ":") {
			return nil, "", fmt.Errorf("%w: malformed token before the @", leaf.ErrInvalid)
		}
		rest = rest[at+1:]
	}
	if strings.Contains(rest, "://") {
		return nil, "", fmt.Errorf("%w: the URL of several servers has one scheme, as in http://h1:8080,h2:8080", leaf.ErrInvalid)
	}
	for host := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
		servers = append(servers, scheme+"://"+host)
	}
	return servers, token, nil
}

// Next returns the next ID of a tag. It fails with an error that wraps [leaf.ErrUnknownTag],
// [leaf.ErrExhausted], [leaf.ErrOverflow], [leaf.ErrInvalid], [leaf.ErrClosed] or the context's
// own; with an insufficient token it wraps both [ErrDenied] and [leaf.ErrExhausted].
func (c *Client) Next(ctx context.Context, tag string) (int64, error) { return c.set.Next(ctx, tag) }

// Take appends n IDs of a tag to dst as few ranges. Its errors are those of [Client.Next].
func (c *Client) Take(ctx context.Context, tag string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	return c.set.Take(ctx, tag, dst, n)
}

// Tag returns the generator of a tag.
func (c *Client) Tag(tag string) leaf.Generator { return tagged{c.set, tag} }

type tagged struct {
	set *segment.Set
	tag string
}

func (t tagged) Next(ctx context.Context) (int64, error) { return t.set.Next(ctx, t.tag) }

func (t tagged) Take(ctx context.Context, dst []leaf.Range, n int) ([]leaf.Range, error) {
	return t.set.Take(ctx, t.tag, dst, n)
}

// Cursor returns a cursor over a tag for one goroutine. It takes IDs off the stock in blocks,
// so that goroutines with a cursor each hardly contend; block 0 means [segment.DefaultBlock].
func (c *Client) Cursor(tag string, block int) *segment.Cursor { return c.set.Cursor(tag, block) }

// Stats describes each tag in use.
func (c *Client) Stats() []segment.Stats { return c.set.Stats() }

// Close gives unused IDs back and ends the connections. Later calls fail with [leaf.ErrClosed]. An
// error reports IDs that the servers did not take back: they are lost. That is normal if other
// programs have taken IDs since. A second call waits for the first.
func (c *Client) Close(ctx context.Context) error {
	c.closing.Lock()
	defer c.closing.Unlock()
	return errors.Join(c.set.Close(ctx), c.conn.Close())
}
