package frontend

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/leaf-id/leaf/internal/server/access"
)

// Caller returns who sent r, or [access.Gate.Anyone] while the gate is open. The error is one of
// package access.
func (o *Options) Caller(r *http.Request) (*access.Caller, error) {
	if o.Access.Open() {
		return o.Access.Anyone(), nil
	}
	return o.Access.Caller(credentials(r))
}

// CallerWith is [Options.Caller] for a protocol with a token among its parameters. The header of
// HTTP overrules it.
func (o *Options) CallerWith(r *http.Request, token string) (*access.Caller, error) {
	c := credentials(r)
	c.Token = cmp.Or(c.Token, token)
	return o.Access.Caller(c)
}

// CallerName returns the name of the token or certificate of r for a log: "anonymous" without one,
// "unknown" where it is not accepted. It never returns a token itself.
func (o *Options) CallerName(r *http.Request) string {
	c := credentials(r)
	caller := o.Access.Lookup(c)
	if caller == nil && c.Token != "" {
		return "unknown"
	}
	return caller.Name()
}

// Admit returns the caller of r if it has one of the rights, or an error with the reason. The caller
// may live as long as r. A browser runs other people's code: a page of another site changes nothing,
// and a page whose host name leads here may take IDs at most.
func (o *Options) Admit(r *http.Request, rights access.Right) (*access.Caller, error) {
	if rights&access.Take == 0 {
		if err := o.CheckHost(r); err != nil {
			return nil, err
		}
	}
	if rights&(access.Admin|access.Worker|access.Lease) != 0 {
		if err := http.NewCrossOriginProtection().Check(r); err != nil {
			return nil, fmt.Errorf("%w: nothing is changed on behalf of another web site: %w", access.ErrForbidden, err)
		}
	}
	caller, err := o.Access.Caller(credentials(r))
	if err != nil {
		return nil, err
	}
	return caller, caller.May(rights)
}

// credentials returns the credentials of r. Behind a proxy the address is the proxy's, because
// anyone can send X-Forwarded-For.
func credentials(r *http.Request) access.Credentials {
	var c access.Credentials
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		c.Token = strings.TrimSpace(token)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Certificate = r.TLS.VerifiedChains[0][0]
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.Addr = from.Addr().Unmap()
	}
	return c
}

type callerKey struct{}

// WithCaller returns a context with c, for code that serves a request without seeing it.
func WithCaller(ctx context.Context, c *access.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerIn returns the caller in ctx; without one nil, who may do nothing.
func CallerIn(ctx context.Context) *access.Caller {
	c, _ := ctx.Value(callerKey{}).(*access.Caller)
	return c
}

// ErrorText returns the text of err for callers: all of it where only this machine reaches the
// server, as an operator on it may read its log too.
func (o *Options) ErrorText(err error) string {
	if o.OnLoopback() {
		return err.Error()
	}
	return Text(err)
}
