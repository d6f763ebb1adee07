package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
)

const defaultServer = "http://127.0.0.1:8080"

// A Client is how a command reaches a server.
type Client struct {
	Server  string // as the user names it
	Timeout time.Duration

	// Explain adds the meaning for the user to an error of a call that took that long; nil: a
	// server answers the calls.
	Explain func(err error, took time.Duration) error

	credentials
}

// AddFlags defines the flags of every command that talks to a server.
func (c *Client) AddFlags(cmd *cobra.Command) {
	TextVar(cmd, &c.Server, "server", "`URL` of the server (default $LEAF_SERVER, or "+defaultServer+")")
	DurationVar(cmd, &c.Timeout, "timeout", "", 10*time.Second, 1, "how long to wait for each answer")
	c.credentials.addFlags(cmd)
}

// Address returns the server's URL; a bare host:port means http.
func (c *Client) Address() (string, error) {
	text := cmp.Or(c.Server, os.Getenv("LEAF_SERVER"), defaultServer)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		wrong := &Error{
			Err:  fmt.Errorf("the server's URL %q is not an http or https address", text),
			Hint: "write it like " + defaultServer,
		}
		if c.Server != "" {
			wrong.Code = ExitUsage
		}
		return "", wrong
	}
	return strings.TrimSuffix(text, "/"), nil
}

func (c *Client) connect() (*http.Client, string, error) {
	base, err := c.Address()
	if err != nil {
		return nil, "", err
	}
	h, err := c.credentials.http()
	return h, base, err
}

// Open returns a service of the server. open is the service's constructor in package leafv1connect.
func Open[Service any](c *Client, open func(connect.HTTPClient, string, ...connect.ClientOption) Service) (s Service, err error) {
	h, base, err := c.connect()
	if err == nil {
		s = open(h, base)
	}
	return s, err
}

// Alive asks whether the server's process lives. It needs no right.
func (c *Client) Alive(ctx context.Context, _ *struct{}) (*struct{}, error) {
	h, base, err := c.connect()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := h.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, connect.NewError(connect.CodeDeadlineExceeded, err)
	case err != nil:
		return nil, connect.NewError(connect.CodeUnavailable, errors.Unwrap(err)) // without the URL
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/healthz is answered %s", res.Status)
	}
	return nil, nil
}

// Call makes one call within the time-out and explains its error.
func Call[Req, Res any](ctx context.Context, c *Client, do func(context.Context, *Req) (*Res, error), req *Req) (*Res, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	res, err := do(ctx, req)
	switch {
	case err == nil:
		return res, nil
	case c.Explain != nil:
		return nil, c.Explain(err, time.Since(start))
	}
	return nil, c.explain(err)
}

// explain adds the meaning for the user to an error of a server's call.
func (c *Client) explain(err error) error {
	base, _ := c.Address()
	text, ok := strings.CutPrefix(err.Error(), connect.CodeOf(err).String()+": ")
	if !ok {
		text = err.Error()
	}
	plain := &Error{Text: text, Err: err}
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return Hinted(fmt.Errorf("the certificate of %s is not trusted: %w", base, untrusted.Err),
			"name the authority that vouches for it with --ca-file FILE")
	}
	switch code := connect.CodeOf(err); {
	case code == connect.CodeDeadlineExceeded:
		return Hinted(fmt.Errorf("no answer from %s within %s", base, c.Timeout),
			"wait longer with --timeout, or ask 'leaf status' what the server is busy with")
	case code == connect.CodeUnavailable && !connect.IsWireError(err):
		return Hinted(fmt.Errorf("no server answers at %s: %s", base, text), "start one with 'leaf serve', or name it with --server URL")
	case !connect.IsWireError(err) && code != connect.CodeCanceled:
		return Hinted(fmt.Errorf("the server at %s is not a Leaf server: %s", base, text), "name the server with --server URL")
	case code == connect.CodeUnauthenticated:
		plain.Hint = "give the token that the server's operator has made with --token-file FILE or LEAF_TOKEN"
	case code == connect.CodePermissionDenied:
		plain.Hint = "use a token that has the right, or act on the store itself with --store URL, on worker IDs with --workers URL"
	}
	return plain
}
