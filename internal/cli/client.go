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

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
)

const defaultServer = "http://127.0.0.1:8080"

// A Client is how a command reaches a server.
type Client struct {
	Server  string // as the user names it
	Timeout time.Duration
	credentials
}

// AddFlags defines the flags of every command that talks to a server.
func (c *Client) AddFlags(cmd *cobra.Command) {
	TextVar(cmd, &c.Server, "server", "`URL` of the server (default $LEAF_SERVER, or "+defaultServer+")")
	TimeoutVar(cmd, &c.Timeout, "timeout", 10*time.Second, "how long to wait for each answer")
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

// connect returns what reaches the server, and its URL.
func (c *Client) connect() (*http.Client, string, error) {
	base, err := c.Address()
	if err != nil {
		return nil, "", err
	}
	h, err := c.credentials.http()
	return h, base, err
}

// IDs returns the service of IDs.
func (c *Client) IDs() (leafv1connect.LeafServiceClient, error) {
	h, base, err := c.connect()
	if err != nil {
		return nil, err
	}
	return leafv1connect.NewLeafServiceClient(h, base), nil
}

// Admin returns the service for administration.
func (c *Client) Admin() (leafv1connect.AdminServiceClient, error) {
	h, base, err := c.connect()
	if err != nil {
		return nil, err
	}
	return leafv1connect.NewAdminServiceClient(h, base), nil
}

// Workers returns the service of worker IDs.
func (c *Client) Workers() (leafv1connect.WorkerServiceClient, error) {
	h, base, err := c.connect()
	if err != nil {
		return nil, err
	}
	return leafv1connect.NewWorkerServiceClient(h, base), nil
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

// A Caller makes calls within a time-out and explains their errors.
type Caller interface {
	Limit() time.Duration
	Explain(err error, took time.Duration) error
}

// Call makes one call.
func Call[Req, Res any](ctx context.Context, c Caller, do func(context.Context, *Req) (*Res, error), req *Req) (*Res, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.Limit())
	defer cancel()
	res, err := do(ctx, req)
	if err != nil {
		return nil, c.Explain(err, time.Since(start))
	}
	return res, nil
}

// Limit is how long a call may take.
func (c *Client) Limit() time.Duration { return c.Timeout }

// Explain adds the meaning for the user to an error of a server's call.
func (c *Client) Explain(err error, _ time.Duration) error {
	base, _ := c.Address()
	text, ok := strings.CutPrefix(err.Error(), connect.CodeOf(err).String()+": ")
	if !ok {
		text = err.Error()
	}
	plain := &PlainError{text, err}
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
		return Hinted(fmt.Errorf("what answers at %s is not a Leaf server: %s", base, text), "name the server with --server URL")
	case code == connect.CodeUnauthenticated:
		return Hinted(plain, "give the token that the server's operator has made with --token-file FILE or LEAF_TOKEN")
	case code == connect.CodePermissionDenied:
		return Hinted(plain, "use a token that has the right, or act on the store itself with --store URL, on worker IDs with --workers URL")
	}
	return plain
}

// A PlainError is an error in words for people.
type PlainError struct {
	Text  string
	Cause error
}

func (e *PlainError) Error() string { return e.Text }
func (e *PlainError) Unwrap() error { return e.Cause }
