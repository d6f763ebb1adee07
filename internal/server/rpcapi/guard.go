package rpcapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
)

// A guard lets only callers on this machine change tags, since there are no
// credentials yet. A browser on this machine runs other people's code, so what a page
// of another origin sends is refused as well, also if that page's host name was made
// to point here.
type guard struct {
	next     http.Handler
	loopback bool // the server listens on a loopback address
	origins  *http.CrossOriginProtection
	errors   *connect.ErrorWriter
}

func newGuard(listen net.Addr, next http.Handler) *guard {
	return &guard{next, isLoopback(listen), http.NewCrossOriginProtection(), connect.NewErrorWriter()}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := g.check(r); err != nil {
		_ = g.errors.Write(w, r, connect.NewError(connect.CodePermissionDenied, err)) // a client that has gone needs no answer
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *guard) check(r *http.Request) error {
	switch r.URL.Path {
	case leafv1connect.AdminServiceListTagsProcedure, leafv1connect.AdminServiceStatusProcedure:
		return nil
	}
	if !g.loopback {
		return errors.New("this server listens on an address that other machines reach and has no credentials, so it changes no tags: " +
			"use --store URL to work on the store itself, or let the server listen on a loopback address such as 127.0.0.1:8080")
	}
	if !localHost(r.Host) {
		return fmt.Errorf("the request is for host %q: to change tags, call this server as localhost or by its IP address", r.Host)
	}
	if err := g.origins.Check(r); err != nil {
		return fmt.Errorf("tags are not changed on behalf of another web site: %w", err)
	}
	return nil
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// localHost reports whether a Host header names a host that no name server decides
// about.
func localHost(host string) bool {
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
