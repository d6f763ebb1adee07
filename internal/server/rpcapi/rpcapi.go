// Package rpcapi is the front end for gRPC, gRPC-Web and Connect: the services of
// package leafv1 on net/http.
package rpcapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/failure"
	"github.com/leaf-id/leaf/internal/server/loopback"
)

const (
	maxRequest  = 64 << 10 // bytes; the longest sensible request is far shorter
	minCompress = 1 << 10  // bytes; compressing a lone ID costs more than sending it
)

// Info is what AdminService tells about the server itself.
type Info struct {
	Version   string
	Started   time.Time
	Listen    net.Addr // decides whether administrative calls are allowed
	Address   string   // Listen for people
	StoreName string   // a URL without credentials
	Registry  string   // of worker IDs; likewise
}

// A Backend is what the services are the front end of.
type Backend struct {
	IDs     *issuer.Issuer
	Tags    *issuer.Tags    // nil: the segment scheme is not enabled
	Workers *issuer.Workers // nil: no time-based scheme is enabled
	Layouts issuer.Layouts
}

// Register adds both services to mux.
func Register(mux *http.ServeMux, b Backend, info Info) {
	options := func(t tell) []connect.HandlerOption {
		return []connect.HandlerOption{
			connect.WithCompressMinBytes(minCompress),
			connect.WithReadMaxBytes(maxRequest),
			connect.WithInterceptors(connect.UnaryInterceptorFunc(t.withCodes)),
		}
	}
	mux.Handle(leafv1connect.NewLeafServiceHandler(&leafService{b}, options(failure.Text)...))
	operator := tell(error.Error) // who administers this machine may know all that its log says
	if !loopback.Is(info.Listen) {
		operator = failure.Text
		info.StoreName, _, _ = strings.Cut(info.StoreName, ":")
		info.Registry, _, _ = strings.Cut(info.Registry, ":")
	}
	path, admin := leafv1connect.NewAdminServiceHandler(&adminService{b, info, operator}, options(operator)...)
	mux.Handle(path, newGuard(info.Listen, admin))
}

// A tell returns what a caller is told of an error.
type tell func(error) string

// withCodes gives errors the codes of the protocols.
func (t tell) withCodes(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		if err == nil {
			return res, nil
		}
		kind := failure.Of(err)
		coded := connect.NewError(kind.RPC, errors.New(t(err)))
		if kind.Retry {
			coded.Meta().Set("Retry-After", failure.RetryAfter)
		}
		return nil, coded
	}
}
