package rpcapi

import (
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A guard lets only callers on this machine change anything, since there are no
// credentials yet. A browser on this machine runs other people's code, so what a page
// of another origin sends is refused as well; and everything, reads too, if that
// page's host name was made to point here.
type guard struct {
	next    http.Handler
	opts    *frontend.Options
	origins *http.CrossOriginProtection
	errors  *connect.ErrorWriter
}

func newGuard(opts *frontend.Options, next http.Handler) *guard {
	return &guard{next, opts, http.NewCrossOriginProtection(), connect.NewErrorWriter()}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := g.check(r); err != nil {
		_ = g.errors.Write(w, r, connect.NewError(connect.CodePermissionDenied, err)) // a client that has gone needs no answer
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *guard) check(r *http.Request) error {
	if err := g.opts.CheckHost(r); err != nil {
		return err
	}
	switch r.URL.Path {
	case leafv1connect.AdminServiceListTagsProcedure, leafv1connect.AdminServiceListWorkersProcedure, leafv1connect.AdminServiceStatusProcedure:
		return nil
	}
	if !g.opts.OnLoopback() {
		return errors.New("this server listens on an address that other machines reach and has no credentials, so it changes no tags and frees no worker IDs")
	}
	if err := g.origins.Check(r); err != nil {
		return fmt.Errorf("nothing is changed on behalf of another web site: %w", err)
	}
	return nil
}
