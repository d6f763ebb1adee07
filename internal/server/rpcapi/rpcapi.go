// Package rpcapi is the front end for gRPC, gRPC-Web and Connect: the services of
// package leafv1 on net/http.
package rpcapi

import (
	"context"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/failure"
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
	StoreName string   // without credentials
	Registry  string   // of worker IDs; without credentials
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
	opts := []connect.HandlerOption{
		connect.WithCompressMinBytes(minCompress),
		connect.WithReadMaxBytes(maxRequest),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(withCodes)),
	}
	mux.Handle(leafv1connect.NewLeafServiceHandler(&leafService{b}, opts...))
	path, admin := leafv1connect.NewAdminServiceHandler(&adminService{b, info}, opts...)
	mux.Handle(path, newGuard(info.Listen, admin))
}

// withCodes gives errors the codes of the protocols.
func withCodes(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		if err == nil {
			return res, nil
		}
		kind := failure.Of(err)
		coded := connect.NewError(kind.RPC, err)
		if kind.Retry {
			coded.Meta().Set("Retry-After", failure.RetryAfter)
		}
		return nil, coded
	}
}
