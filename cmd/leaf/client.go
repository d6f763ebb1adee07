package main

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

// A client is how a command reaches a server.
type client struct {
	server      string // as the user names it
	timeout     time.Duration
	credentials credentials
}

// addFlags defines the flags of every command that talks to a server.
func (c *client) addFlags(cmd *cobra.Command) {
	textVar(cmd, &c.server, "server", "`URL` of the server (default $LEAF_SERVER, or "+defaultServer+")")
	timeoutVar(cmd, &c.timeout, "timeout", 10*time.Second, "how long to wait for each answer")
	c.credentials.addFlags(cmd)
}

// address returns the server's URL; a bare host:port means http.
func (c *client) address() (string, error) {
	text := cmp.Or(c.server, os.Getenv("LEAF_SERVER"), defaultServer)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		wrong := &cliError{
			err:  fmt.Errorf("the server's URL %q is not an http or https address", text),
			hint: "write it like " + defaultServer,
		}
		if c.server != "" {
			wrong.code = exitUsage
		}
		return "", wrong
	}
	return strings.TrimSuffix(text, "/"), nil
}

// connect returns what reaches the server, and its URL.
func (c *client) connect() (*http.Client, string, error) {
	base, err := c.address()
	if err != nil {
		return nil, "", err
	}
	h, err := c.credentials.http()
	return h, base, err
}

func (c *client) ids() (leafv1connect.LeafServiceClient, error) {
	h, base, err := c.connect()
	if err != nil {
		return nil, err
	}
	return leafv1connect.NewLeafServiceClient(h, base), nil
}

func (c *client) admin() (leafv1connect.AdminServiceClient, error) {
	h, base, err := c.connect()
	if err != nil {
		return nil, err
	}
	return leafv1connect.NewAdminServiceClient(h, base), nil
}

// A caller makes calls within a time-out and explains their errors.
type caller interface {
	limit() time.Duration
	explain(err error, took time.Duration) error
}

// call makes one call.
func call[Req, Res any](ctx context.Context, c caller, do func(context.Context, *Req) (*Res, error), req *Req) (*Res, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.limit())
	defer cancel()
	res, err := do(ctx, req)
	if err != nil {
		return nil, c.explain(err, time.Since(start))
	}
	return res, nil
}

func (c *client) limit() time.Duration { return c.timeout }

// explain adds the meaning for the user to an error of a server's call.
func (c *client) explain(err error, _ time.Duration) error {
	base, _ := c.address()
	text, ok := strings.CutPrefix(err.Error(), connect.CodeOf(err).String()+": ")
	if !ok {
		text = err.Error()
	}
	plain := &plainError{text, err}
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return hinted(fmt.Errorf("the certificate of %s is not trusted: %w", base, untrusted.Err),
			"name the authority that vouches for it with --ca-file FILE")
	}
	switch code := connect.CodeOf(err); {
	case code == connect.CodeDeadlineExceeded:
		return hinted(fmt.Errorf("no answer from %s within %s", base, c.timeout),
			"wait longer with --timeout, or ask 'leaf status' what the server is busy with")
	case code == connect.CodeUnavailable && !connect.IsWireError(err):
		return hinted(fmt.Errorf("no server answers at %s: %s", base, text), "start one with 'leaf serve', or name it with --server URL")
	case !connect.IsWireError(err) && code != connect.CodeCanceled:
		return hinted(fmt.Errorf("what answers at %s is not a Leaf server: %s", base, text), "name the server with --server URL")
	case code == connect.CodeUnauthenticated:
		return hinted(plain, "give the token that the server's operator has made with --token-file FILE or LEAF_TOKEN")
	case code == connect.CodePermissionDenied:
		return hinted(plain, "use a token that has the right, or act on the store itself with --store URL, on worker IDs with --workers URL")
	}
	return plain
}

// A plainError is an error in words for people.
type plainError struct {
	text  string
	cause error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.cause }
